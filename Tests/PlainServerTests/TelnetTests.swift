import Testing

@testable import PlainServer

@Suite("Telnet")
struct TelnetTests {
    private static let iac: UInt8 = 255
    private static let (will, wont, `do`, dont, begin, end): (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) =
        (251, 252, 253, 254, 250, 240)

    private func feed(_ telnet: inout Telnet, _ bytes: [UInt8]) -> [Telnet.Event] {
        bytes.compactMap { telnet.received($0) }
    }

    @Test("text goes through, and an escaped 255")
    func text() {
        var telnet = Telnet()
        #expect(feed(&telnet, Array("aé".utf8)) == Array("aé".utf8).map { .byte($0) })
        #expect(feed(&telnet, [Self.iac, Self.iac]) == [.byte(255)])
        #expect(!telnet.isSpoken)
        #expect(telnet.takeOutput() == [])
    }

    @Test("every option that is not spoken is refused, once, and no refusal is answered")
    func refusals() {
        for option in UInt8.min...UInt8.max {
            var telnet = Telnet()
            _ = feed(&telnet, [Self.iac, Self.will, option])
            let spoken = [0, 3, 24, 31].contains(option)
            #expect(telnet.takeOutput().prefix(3) == [Self.iac, spoken ? Self.do : Self.dont, option])
            _ = feed(&telnet, [Self.iac, Self.do, option])
            let done = [0, 1, 3, 6].contains(option)
            #expect(telnet.takeOutput() == [Self.iac, done ? Self.will : Self.wont, option])
            var silent = Telnet()
            _ = feed(&silent, [Self.iac, Self.wont, option, Self.iac, Self.dont, option])
            #expect(silent.takeOutput() == [])
        }
    }

    @Test("what is offered is agreed on without another word, and can be refused")
    func agreement() {
        var telnet = Telnet()
        telnet.offer(.echo)
        telnet.offer(.echo)
        #expect(telnet.takeOutput() == [Self.iac, Self.will, 1])
        #expect(feed(&telnet, [Self.iac, Self.do, 1]) == [.agreed])
        #expect(telnet.weDo(.echo))
        #expect(telnet.takeOutput() == [])
        #expect(feed(&telnet, [Self.iac, Self.do, 1]) == [])
        #expect(feed(&telnet, [Self.iac, Self.dont, 1]) == [.agreed])
        #expect(!telnet.weDo(.echo))
        #expect(telnet.takeOutput() == [Self.iac, Self.wont, 1])
    }

    @Test("size and type of the terminal")
    func parameters() {
        var telnet = Telnet()
        #expect(
            feed(&telnet, [Self.iac, Self.begin, 31, 0, 80, 0, 24, Self.iac, Self.end])
                == [.windowSize(columns: 80, rows: 24)])
        #expect(
            feed(&telnet, [Self.iac, Self.begin, 31, Self.iac, Self.iac, 1, 0, 24, Self.iac, Self.end])
                == [.windowSize(columns: 0xFF01, rows: 24)])
        #expect(
            feed(&telnet, [Self.iac, Self.begin, 24, 0] + Array("XTERM".utf8) + [Self.iac, Self.end])
                == [.terminalType("xterm")])
        for bad: [UInt8] in [[31], [31, 0], [31, 0, 80, 0, 24, 0], [24], [24, 1, 65], [], [200, 1]] {
            #expect(feed(&telnet, [Self.iac, Self.begin] + bad + [Self.iac, Self.end]) == [])
        }
        // Longer than any option.
        #expect(feed(&telnet, [Self.iac, Self.begin, 24, 0] + [UInt8](repeating: 65, count: 100_000)) == [])
        #expect(feed(&telnet, [Self.iac, Self.end, 66]) == [.byte(66)])
    }

    @Test("a mark is an answer to what was asked, and else an option like others")
    func marks() {
        var telnet = Telnet()
        #expect(feed(&telnet, [Self.iac, Self.will, 6]) == [])
        #expect(telnet.takeOutput() == [Self.iac, Self.dont, 6])
        telnet.requestMark("a")
        #expect(telnet.takeOutput() == [Self.iac, Self.do, 6])
        #expect(feed(&telnet, [Self.iac, Self.wont, 6]) == [.mark(token: "a")])
        #expect(feed(&telnet, [Self.iac, Self.wont, 6]) == [])
    }
}
