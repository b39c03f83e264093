import Configuration
import Glibc
import Testing
import Upstream
import WireBytes

@testable import ChatBridge

@Suite("What the service manager is told")
struct ServiceManagerTests {
    private static func at(_ milliseconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: 0) + .milliseconds(milliseconds)
    }

    /// Turns the loop until `end`, at each deadline; what is sent, each behind its moment in milliseconds.
    private static func run(
        _ notices: inout ServiceNotices, until end: Int64, from begin: Int64 = 0, isStopping: Bool = false,
        status: (Int64) -> String = { _ in "1/1 rooms up, 0 clients" }
    ) -> [String] {
        var (now, found): (Int64, [String]) = (begin, [])
        while now <= end {
            notices.turned(isStopping: isStopping, now: at(now)) { status(now) }
            if let message = notices.message() {
                found.append("\(now) " + message.replacing("\n", with: " "))
                notices.sent()
            }
            guard let next = notices.nextDeadline() else { break }
            now = max(now + 1, (next.nanoseconds + 999_999) / 1_000_000)
        }
        return found
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var variables: [String: String]
        var socket: String?
        var watchdog: Duration?
    }

    static let rows = [
        Row(testDescription: "nothing", variables: [:]),
        Row(testDescription: "a watchdog without a socket", variables: ["WATCHDOG_USEC": "30000000"]),
        Row(testDescription: "a socket", variables: ["NOTIFY_SOCKET": "/run/n"], socket: "/run/n"),
        Row(testDescription: "an abstract name", variables: ["NOTIFY_SOCKET": "@a/b"], socket: "@a/b"),
        Row(testDescription: "another family", variables: ["NOTIFY_SOCKET": "vsock:2:1"]),
        Row(testDescription: "no name", variables: ["NOTIFY_SOCKET": "@"]),
        Row(
            testDescription: "a path that is too long",
            variables: ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 107)]),
        Row(
            testDescription: "a watchdog", variables: ["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "30000000"],
            socket: "/n", watchdog: .seconds(30)),
        Row(
            testDescription: "a watchdog of this process",
            variables: ["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "77"], socket: "/n",
            watchdog: .microseconds(5)),
        Row(
            testDescription: "a watchdog of another process",
            variables: ["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "78"], socket: "/n"),
        Row(
            testDescription: "a watchdog that is no number",
            variables: ["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "-5"], socket: "/n"),
    ]

    @Test("the environment says who wants to know", arguments: rows)
    func environment(_ row: Row) {
        let settings = ServiceManagerSettings(variables: row.variables, processID: 77)
        #expect(settings.socket == row.socket)
        #expect(settings.watchdog == row.watchdog)
    }

    @Test("a variable that is taken is no longer there for children")
    func taken() {
        setenv("CHATBRIDGE_TEST_TAKEN", "1", 1)
        ConfigurationEnvironment.remove(["CHATBRIDGE_TEST_TAKEN"])
        #expect(getenv("CHATBRIDGE_TEST_TAKEN") == nil)
        #expect(ServiceManagerSettings.variables.contains("NOTIFY_SOCKET"))
    }

    @Test("without a watchdog a quiet loop is never woken")
    func quiet() {
        var notices = ServiceNotices(watchdog: nil)
        #expect(Self.run(&notices, until: 100_000) == ["0 READY=1 STATUS=1/1 rooms up, 0 clients"])
        #expect(notices.nextDeadline() == nil)
        // A turn long after, as a timer causes it, changes nothing.
        #expect(Self.run(&notices, until: 200_000, from: 100_000) == [])
        #expect(notices.nextDeadline() == nil)
    }

    @Test("the watchdog is fed at half of its time")
    func watchdog() {
        var notices = ServiceNotices(watchdog: .seconds(30))
        #expect(
            Self.run(&notices, until: 45_000) == [
                "0 READY=1 STATUS=1/1 rooms up, 0 clients", "15000 WATCHDOG=1", "30000 WATCHDOG=1", "45000 WATCHDOG=1",
            ])
    }

    @Test("a status that changes is sent once in five seconds, the last one for certain")
    func status() {
        var notices = ServiceNotices(watchdog: nil)
        var sent: [String] = []
        for moment in stride(from: Int64(0), through: 7000, by: 500) {
            notices.turned(isStopping: false, now: Self.at(moment)) { "\(moment)" }
            if let message = notices.message() { sent.append("\(moment) \(message.replacing("\n", with: " "))") }
            notices.sent()
        }
        #expect(sent == ["0 READY=1 STATUS=0", "5000 STATUS=5000"])
        #expect(Self.run(&notices, until: 20_000, from: 10_000) { "\($0)" } == ["10000 STATUS=10000"])
        #expect(notices.nextDeadline() == nil)
    }

    @Test("a bridge that stops says so at once, and asks for more time while it does")
    func stopping() {
        var notices = ServiceNotices(watchdog: nil)
        _ = Self.run(&notices, until: 1000)
        #expect(
            Self.run(&notices, until: 12_000, from: 1000, isStopping: true) { _ in "0/1 rooms up, 0 clients" } == [
                "1000 STOPPING=1 EXTEND_TIMEOUT_USEC=15000000 STATUS=0/1 rooms up, 0 clients",
                "6000 EXTEND_TIMEOUT_USEC=15000000", "11000 EXTEND_TIMEOUT_USEC=15000000",
            ])
    }

    @Test("a reload is framed by its beginning, with the time, and its end")
    func reload() {
        var notices = ServiceNotices(watchdog: nil)
        _ = Self.run(&notices, until: 0)
        notices.reloading(now: Self.at(1234))
        #expect(notices.message() == "RELOADING=1\nMONOTONIC_USEC=1234000")
        notices.sent()
        notices.reloaded()
        #expect(notices.message() == "READY=1")
    }

    @Test("what a full queue did not take is sent again, in order")
    func full() {
        var notices = ServiceNotices(watchdog: nil)
        notices.turned(isStopping: false, now: Self.at(0)) { "a" }
        notices.delayed(now: Self.at(0))
        #expect(notices.nextDeadline() == Self.at(100))
        notices.turned(isStopping: true, now: Self.at(100)) { "a" }
        #expect(notices.message() == "READY=1\nSTATUS=a\nSTOPPING=1\nEXTEND_TIMEOUT_USEC=15000000")
        notices.sent()
        #expect(notices.nextDeadline() == Self.at(5100))
    }

    @Test("rooms that nobody is in do not count in the status")
    func line() {
        func room(_ link: RoomState.Link, isOnDemand: Bool = false) -> RoomState {
            RoomState(
                name: "a", link: link, hasBeenUp: false, failures: 0, reason: nil, isOnDemand: isOnDemand)
        }
        let rooms = [room(.up), room(.waiting), room(.stopped, isOnDemand: true), room(.up, isOnDemand: true)]
        #expect(ServiceStatus(rooms: rooms, clients: 12).text == "2/3 rooms up, 12 clients")
        #expect(ServiceStatus(rooms: [room(.up)], clients: 1).text == "1/1 rooms up, 1 client")
    }
}
