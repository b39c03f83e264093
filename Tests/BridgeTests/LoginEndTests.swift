import BridgeTestSupport
import BridgeTypes
import ChatModel
import DescribedDialects
import Dialects
import HTTPProtocol
import JSONText
import Testing
import Upstream
import WireBytes

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A login that works and then ends: what was shown opened a session, so it was not refused.
@Suite("Logins that end")
struct LoginEndTests {
    /// A backend whose access tokens end, and that tells so in one of the ways there are.
    final class Backend {
        enum Way: String, CaseIterable, Sendable {
            /// On the open socket, where the login was a frame and can be shown again.
            case told
            /// By a refused handshake, after the socket was closed.
            case refused
            /// By a close right after the handshake, as servers do that look at tokens later.
            case closedLate
        }

        let harness: BridgeHarness
        let server = TokenServer()
        let way: Way
        /// How long a token is good; nil: for ever.
        var life: Duration?
        /// When the token was issued that is good now.
        private var issued: (token: String, at: MonotonicInstant)?
        /// Who is on the socket, and whether its end was told.
        private var shown: String?
        private var isTold = false
        private(set) var connects = 0
        private(set) var shows = 0
        /// How long the room's link was not usable, after it was first.
        private(set) var down: Duration = .zero
        private(set) var longestDown: Duration = .zero
        private var downSince: MonotonicInstant?
        private var hasBeenUp = false

        static let step: Duration = .milliseconds(50)

        /// - Parameter says: the lifetime that the server says, in milliseconds.
        init(_ way: Way, life: Duration?, says: Int64? = nil, login: LoginSettings? = nil) throws {
            self.way = way
            self.life = life
            var dialect = StubDialect { $0.opening = way == .told ? .authenticates : [] }
            dialect.calls = AccountCalls()
            var room = RoomSettings(
                name: "one", backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/one"))
            room.ping = .zero
            room.authenticates = true
            let backend = BackendSettings(
                name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
                login: login ?? LoginSettings(sendAs: way == .told ? .message : .bearer), authenticates: true)
            harness = BridgeHarness(
                settings: BridgeSettings(serverName: "bridge", instanceID: "t", rooms: [room], backends: [backend]))
            server.lifetime = says
            harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
            harness.accounts.server = { [server] in server.answer($0) }
            harness.acceptsConnections = false
            harness.start()
        }

        var isUp: Bool { harness.bridge.roomStates[0].isUp }
        var renewals: Int { server.log.count { $0 == "/refresh" } }
        var logins: Int { server.log.count { $0 == "/login" } }

        /// Lets time pass, and plays the backend meanwhile.
        func run(for time: Duration) {
            let end = now + time
            while now < end {
                play()
                note()
                harness.advance(by: Self.step)
            }
        }

        private var now: MonotonicInstant { harness.clock.now.monotonic }

        private func note() {
            if isUp {
                if let downSince {
                    down += now - downSince
                    longestDown = max(longestDown, now - downSince)
                }
                downSince = nil
                hasBeenUp = true
            } else if hasBeenUp, downSince == nil {
                downSince = now
            }
            if let downSince { longestDown = max(longestDown, now - downSince) }
        }

        private func isGood(_ token: String?) -> Bool {
            guard let token, token == server.access else { return false }
            if issued?.token != token { issued = (token, now) }
            guard let issued, let life, now - issued.at >= life else { return true }
            server.expireAccess()
            return false
        }

        private func play() {
            if server.access != nil { _ = isGood(server.access) }
            let upstream = harness.upstream(0)
            if upstream.state == .connecting {
                connects += 1
                shown = nil
                switch way {
                case .told: harness.accept(0)
                case .refused:
                    // What is shown is what the account holds.
                    shown = harness.bridge.backends.all[0].credentials.headers.first.map {
                        String($0.value.dropFirst(7))
                    }
                    shows += 1
                    if isGood(shown) { harness.accept(0) } else { harness.refuse(0, status: 401) }
                case .closedLate:
                    harness.accept(0)
                    shown = upstream.requests.last?.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") }
                        .map { String($0.dropFirst("Authorization: Bearer ".count)) }
                    shows += 1
                }
                isTold = false
            }
            for case .upstream(0, .frame(let bytes, _)) in harness.takeOutputs() {
                guard let frame = try? JSONValue(parsing: bytes), frame["kind"]?.string == "auth" else { continue }
                shown = frame["access_token"]?.string
                shows += 1
                isTold = !isGood(shown)
                harness.sendFrame(0, #"{"kind":"auth","state":"\#(isTold ? "expired" : "ok")"}"#)
            }
            guard upstream.state == .open, shown != nil, !isTold, !isGood(shown) else { return }
            isTold = true
            if way == .told {
                harness.sendFrame(0, #"{"kind":"auth","state":"expired"}"#)
            } else {
                harness.closeUpstream(0, code: 4001, reason: "token expired")
            }
        }
    }

    @Test(
        "tokens that end after seconds are renewed for ever, and the room hardly misses its link",
        arguments: Backend.Way.allCases.flatMap { way in [3, 8, 45].map { (way.rawValue, $0) } })
    func shortLived(_ way: String, life: Int) throws {
        let backend = try Backend(#require(Backend.Way(rawValue: way)), life: .seconds(life))
        backend.run(for: .seconds(1200))
        #expect(backend.logins == 1, "the refresh token is good")
        // Sessions of three seconds are followed by others less and less often.
        if life >= 5 || way == "told" {
            #expect(backend.isUp)
            #expect(backend.longestDown <= .seconds(2), "\(backend.longestDown)")
        }
        if life >= 5 {
            #expect(backend.down <= .seconds(1200 / life * 2), "\(backend.down)")
            #expect(backend.renewals >= 1200 / (life + 2), "\(backend.renewals)")
        }
        // The next, and where a close may have been about the room, the old one first.
        #expect(backend.shows <= 1200 / life * 3 + 3, "\(backend.shows)")
        #expect(backend.harness.violations == [])
    }

    @Test("a login that ends as soon as it is taken is tried less and less often", arguments: Backend.Way.allCases)
    func endsAtOnce(_ way: Backend.Way) throws {
        let backend = try Backend(way, life: .zero)
        backend.run(for: .seconds(3600))
        // 1 s, 2 s, 4 s and so on up to 15 min; where the handshake is refused there is no session, and no more than two tries.
        #expect((4...40).contains(backend.shows), "\(backend.shows)")
        #expect(backend.connects <= 25, "\(backend.connects)")
        #expect(backend.server.log.count { $0 != "/me" } <= 30, "\(backend.server.log)")
        backend.life = nil
        backend.run(for: .seconds(1200))
        #expect(backend.isUp)
    }

    @Test("a room that is sent away each time is tried less and less often, and the room hears why")
    func sentAway() throws {
        let backend = try Backend(.closedLate, life: nil)
        backend.run(for: .seconds(60))
        var closes: [Duration] = []
        let start = backend.harness.clock.now.monotonic
        for _ in 0..<(3600 * 4) {
            if backend.isUp {
                closes.append(backend.harness.clock.now.monotonic - start)
                backend.harness.closeUpstream(0, code: 4003, reason: "not a member")
            }
            backend.run(for: .milliseconds(250))
        }
        #expect((10...16).contains(closes.count), "\(closes)")
        let waits = zip(closes.dropFirst(), closes).map { $0 - $1 }
        // The first session was a long one, so it is followed at once.
        for (wait, next) in zip(waits.dropFirst(), waits.dropFirst(2)) where next < .seconds(800) {
            #expect(next >= wait + wait / 4, "\(waits)")
        }
        #expect(waits.allSatisfy { $0 <= .seconds(15 * 60 + 2) }, "\(waits)")
        // The token is good, and what closes the session is something else: it is renewed now and then, in case.
        #expect(backend.renewals <= 10, "\(backend.renewals)")
    }

    @Test(
        "tokens of a login that worked, and that are refused for half a minute, are followed by others",
        arguments: Backend.Way.allCases)
    func refusedForAWhile(_ way: Backend.Way) throws {
        let backend = try Backend(way, life: .seconds(600))
        backend.run(for: .seconds(60))
        backend.life = .zero
        let before = backend.shows
        backend.run(for: .seconds(30))
        #expect(backend.shows - before <= 12, "\(backend.shows - before)")
        backend.life = .seconds(600)
        backend.run(for: .seconds(100))
        #expect(backend.isUp)
    }

    @Test("a token that ended before it was shown is replaced too", arguments: Backend.Way.allCases)
    func endsOnItsWay(_ way: Backend.Way) throws {
        let backend = try Backend(way, life: .seconds(600))
        backend.run(for: .seconds(60))
        backend.server.expireAccess()
        // The new one ends as well, before anybody saw it.
        backend.harness.accounts.server = { [server = backend.server] call in
            let answer = server.answer(call)
            if call.path == "/refresh", server.log.count(where: { $0 == "/refresh" }) == 1 { server.expireAccess() }
            return answer
        }
        // Where a close is all that is heard, it may be about the room, and tokens are renewed once a minute.
        backend.run(for: .seconds(way == .closedLate ? 120 : 30))
        #expect(backend.isUp)
        #expect(backend.longestDown <= (way == .closedLate ? .seconds(65) : .seconds(5)), "\(backend.longestDown)")
    }

    // MARK: - What the backend says of the end

    private func oddLifetimes(_ backend: Backend) -> [String] {
        let event = "backend-lifetime-odd"
        #expect(backend.harness.logged(event).allSatisfy { $0.hasPrefix("warn backend=") })
        return backend.harness.notes.filter { $0.event == event }.map(\.text)
    }

    private static func described(unit: Int64) -> LoginSettings {
        LoginSettings(
            calls: TemplateLogin(
                loginTarget: "/login", loginBody: [.init(name: "password", text: "{password}")],
                refreshTarget: "/refresh", refreshBody: [.init(name: "refresh", text: "{refresh_token}")],
                accessTokenAt: JSONPointer(tokens: ["access"]), refreshTokenAt: JSONPointer(tokens: ["refresh"]),
                expiresInAt: JSONPointer(tokens: ["ms"]), expiresInUnit: unit))
    }

    @Test("milliseconds that are read as seconds are noticed, once")
    func millisecondsAsSeconds() throws {
        // 15 minutes, as 10 days.
        let backend = try Backend(.refused, life: .seconds(900), says: 900_000, login: Self.described(unit: 1000))
        backend.run(for: .seconds(2000))
        let said = oddLifetimes(backend)
        #expect(said.count == 1, "\(said)")
        #expect(said.first?.contains("expires_in_unit = \"ms\"") == true, "\(said)")
        #expect(backend.isUp)
    }

    @Test("seconds that are read as milliseconds are noticed, once")
    func secondsAsMilliseconds() throws {
        let backend = try Backend(.refused, life: .seconds(900), says: 900, login: Self.described(unit: 1))
        backend.run(for: .seconds(60))
        let said = oddLifetimes(backend)
        #expect(said.count == 1, "\(said)")
        #expect(said.first?.contains("expires_in_unit = \"s\"") == true, "\(said)")
    }

    @Test("a token that ends long before its time is noticed, whoever described the login")
    func endsEarly() throws {
        let backend = try Backend(.told, life: .seconds(8), says: 8_000_000)
        backend.run(for: .seconds(120))
        let said = oddLifetimes(backend)
        #expect(said.count == 1, "\(said)")
        #expect(said.first?.contains("expires_in_unit") == true, "\(said)")
        #expect(backend.longestDown <= .seconds(2))
    }

    @Test(
        "usual lifetimes are no news", arguments: [60_000, 900_000, 3_600_000, 86_400_000, 30 * 86_400_000] as [Int64])
    func usual(says: Int64) throws {
        let backend = try Backend(.refused, life: nil, says: says)
        backend.run(for: .seconds(10))
        #expect(oddLifetimes(backend) == [])
    }
}
