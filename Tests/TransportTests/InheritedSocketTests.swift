import Glibc
import Testing

@testable import Transport

@Suite("Sockets handed over by the service manager")
struct InheritedSocketTests {
    /// What the process has at a descriptor, and what is said of it.
    enum Kind: String, CaseIterable {
        case listening, notListening, datagram, pipe, closed

        func open() -> Int32 {
            switch self {
            case .listening:
                let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                #expect(listen(made, 8) == 0)
                return made
            case .notListening: return socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
            case .datagram: return socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            case .pipe:
                var ends: [Int32] = [0, 0]
                #expect(Glibc.pipe(&ends) == 0)
                Glibc.close(ends[1])
                return ends[0]
            case .closed: return 1_000_000
            }
        }

        var problem: String? {
            switch self {
            case .listening: nil
            case .notListening: "does not listen; a socket unit for the bridge has Accept=no"
            case .datagram: "is no stream socket"
            case .pipe: "is no socket"
            case .closed: "is not open"
            }
        }
    }

    @Test("only a stream socket that listens is of use; of others it is said what they are", arguments: Kind.allCases)
    func kinds(_ kind: Kind) {
        let descriptor = kind.open()
        defer { close(descriptor) }
        switch InheritedSocket.state(of: descriptor) {
        case .listening(let address): #expect(kind == .listening && address.isLoopback == false)
        case .unusable(let reason): #expect(reason == kind.problem)
        }
    }

    @Test(
        "variables for another process, or without sense, hand over nothing",
        arguments: [
            [:], ["LISTEN_PID": "7"], ["LISTEN_FDS": "1"], ["LISTEN_PID": "8", "LISTEN_FDS": "1"],
            ["LISTEN_PID": "7", "LISTEN_FDS": "0"], ["LISTEN_PID": "7", "LISTEN_FDS": "-1"],
            ["LISTEN_PID": "7", "LISTEN_FDS": "99999999999"], ["LISTEN_PID": "07", "LISTEN_FDS": "1"],
        ] as [[String: String]])
    func nothing(_ variables: [String: String]) {
        #expect(InheritedSocket.all(variables: variables, processID: 7) == [])
    }

    /// In a process of its own, where no other test opens descriptors; those from 3 on are the test library's.
    @Test("names go to descriptors in their order, sockets without a name are called unknown")
    func names() async {
        await #expect(processExitsWith: .success) {
            for (offset, kind) in [Kind.listening, .pipe, .listening].enumerated() {
                let made = kind.open()
                let high = fcntl(made, F_DUPFD, 400)
                close(made)
                dup2(high, 300 + Int32(offset))
                close(high)
            }
            let found = InheritedSocket.all(
                variables: ["LISTEN_PID": "7", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "irc:web"], processID: 7, from: 300)
            #expect(found.map(\.name) == ["irc", "web", "unknown"])
            #expect(found.map(\.descriptor) == [300, 301, 302])
            #expect(found.map { $0.address != nil } == [true, false, true])
            #expect(found[1].state == .unusable("is no socket"))
            #expect(InheritedSocket.firstDescriptor == 3)
            #expect((300...302).allSatisfy { fcntl($0, F_GETFD) & FD_CLOEXEC != 0 }, "children must not have them")
        }
    }
}
