import Testing

@testable import PlainServer

@Suite("Programs and people")
struct EntranceTests {
    private static let verbs: Set<String> = [
        "NICK", "USER", "CAP", "PASS", "PING", "JOIN", "LIST", "HELP", "PRIVMSG", "GET", "POST", "EHLO", "PROXY",
        "QUIT",
    ]

    private func verdict(_ bytes: [UInt8]) -> Entrance.Verdict {
        var entrance = Entrance(verbs: Self.verbs)
        return bytes.withUnsafeBytes { entrance.received($0) }
    }

    @Test("by the first line")
    func firstLines() {
        let programs = [
            "NICK ann\r\n", "nick ann\n", "CAP LS 302\r\n", "@a=b CAP LS\r\n", ":me CAP LS\r\n", "LIST\r\n",
            "\r\nPING 1\r\n",
            "USER a 0 * :b\r\n", "GET / HTTP/1.1\r\n", "EHLO a\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "ping 1\r\n",
        ]
        let people = [
            "hello\r\n", "\r\n", "nick\r\n", "Nick\r\n", "help\r\n", "join the dots\r\n", "user friendly\r\n", "\n\n",
            "list\n",
            "NICKNAME me\r\n", "汤\n",
        ]
        for line in programs { #expect(verdict(Array(line.utf8)) == .program, "\(line.debugDescription)") }
        for line in people { #expect(verdict(Array(line.utf8)) == .person, "\(line.debugDescription)") }
    }

    @Test("by the first byte")
    func firstBytes() {
        #expect(verdict([255, 253, 1]) == .person)
        #expect(verdict([0x16, 0x03, 0x01]) == .program)
        #expect(verdict([0x0D, 0x0A, 0x0D, 0x0A, 0x00]) == .program)
        #expect(verdict(Array("NI".utf8)) == .undecided)
        #expect(verdict([UInt8](repeating: 0x78, count: 2000)) == .person)
        #expect(verdict(Array("PRIVMSG #a :".utf8) + [UInt8](repeating: 0x78, count: 2000)) == .program)
    }

    @Test("in whatever pieces it comes")
    func pieces() {
        for (text, wanted) in [("CAP LS 302\r\n", Entrance.Verdict.program), ("hello\r\n", .person)] {
            var entrance = Entrance(verbs: Self.verbs)
            var verdicts = Array(text.utf8).map { byte in [byte].withUnsafeBytes { entrance.received($0) } }
            verdicts.removeAll { $0 == .undecided }
            #expect(verdicts.first == wanted)
        }
    }

    @Test("what was typed before the first question answers it; Enter alone does not")
    func answers() {
        let rows = [
            ("ann\r\nsecret\n", "ann\r\nsecret\n"), ("\nann\n", "ann\n"), ("an", "an"), ("\r\n\r\nann", "ann"),
        ]
        for (text, rest) in rows {
            var entrance = Entrance(verbs: Self.verbs)
            _ = Array(text.utf8).withUnsafeBytes { entrance.received($0) }
            #expect(entrance.takeAnswers() == Array(rest.utf8))
        }
    }
}
