import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Digests
import HTTPProtocol
import Media
import Testing
import Upstream
import WireBytes

@testable import Accounts
@testable import BridgeCore
@testable import IRCServer
@testable import Media
@testable import Rooms

@Suite("Files of rooms")
struct MediaTests {
    /// A bridge with a room on a backend that takes files, and another room on one that has none.
    private func harness(
        guardsFiles: Bool = false, media: Bool = true, server: TokenServer = TokenServer(), accounts: Bool = true,
        maxUploadBytes: Int = 1000, uploads: [UploadRecord] = [], ownLogin: Bool = false
    ) throws -> BridgeHarness {
        let dialect = AccountDialect(guardsFiles: guardsFiles)
        var lobby = RoomSettings(
            name: "lobby", backend: "main", dialect: dialect, url: try HTTPURL(parsing: "ws://chat.example/lobby"))
        lobby.ping = .zero
        var kitchen = RoomSettings(
            name: "kitchen", dialect: EnvelopeDialect(), url: try HTTPURL(parsing: "ws://other.example/kitchen"))
        kitchen.ping = .zero
        let backend = BackendSettings(
            name: "main", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"), user: "bridge",
            login: LoginSettings())
        var settings = BridgeSettings(
            serverName: "bridge", instanceID: "t", limits: LimitSettings { $0.messagesPerSecond = nil },
            rooms: [lobby, kitchen], backends: [backend])
        if ownLogin {
            settings.backends.append(
                BackendSettings(
                    name: "own", dialect: dialect, httpBase: try HTTPURL(parsing: "http://chat.example"),
                    authenticates: true, isOnDemand: true))
        }
        if accounts {
            let verifier = SCRAMVerifier(quickly: "secret")
            settings.accounts = [
                AccountSettings(
                    name: "chef", password: verifier,
                    ownLogins: ownLogin ? ["lobby": OwnLoginSettings(backend: "own", person: "7")] : [:]),
                AccountSettings(name: "cook", password: verifier, rooms: ["kitchen"]),
                AccountSettings(name: "waiter", password: verifier),
            ]
        }
        if media {
            settings.media = MediaSettings(
                links: KnownLinks.links, maxUploadBytes: maxUploadBytes, uploads: uploads)
        }
        let harness = BridgeHarness(settings: settings)
        harness.echoes = true
        harness.accounts.secrets[0] = .success(.login(user: "bridge", password: "hunter2-secret"))
        harness.accounts.secrets[1] = .success(
            .fixed(UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer chefs-own")])))
        harness.accounts.server = { $0.token == "chefs-own" ? TokenServer.answer(200, "{}") : server.answer($0) }
        harness.start()
        return harness
    }

    private func enter(_ harness: BridgeHarness, _ client: UInt64, _ nick: String, rooms: String = "#lobby") {
        harness.connect(client)
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER u 0 * :r")
        harness.send(client, "JOIN " + rooms)
        _ = harness.takeOutputs()
    }

    private func upload(
        _ harness: BridgeHarness, by name: String = "chef", room: String? = nil, bytes: Int = 3
    ) -> Result<String, UploadFailure>? {
        let file = UploadedFile(name: "my cat.png", mime: "image/png", bytes: Array(repeating: 1, count: bytes))
        harness.perform { $0.upload(UploadID(rawValue: 1), file, by: $0.uploader(name), room: room, now: $1) }
        return harness.uploads.last?.outcome
    }

    private func isupport(_ harness: BridgeHarness) -> [String] {
        harness.bridge.irc.isupport.flatMap { $0 }.filter { $0.contains("FILEHOST") }
    }

    private func sent(_ room: Int, in outputs: [BridgeHarness.Output]) -> [String] {
        outputs.compactMap { output -> String? in
            guard case .upstream(let from, .frame(let bytes, _)) = output, from == room else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    // MARK: - Uploading

    @Test("who can upload is told where")
    func isAnnounced() throws {
        let url = "https://chat.example/media/upload"
        #expect(isupport(try harness()) == ["draft/FILEHOST=\(url)", "soju.im/FILEHOST=\(url)"])
        #expect(isupport(try harness(media: false)).isEmpty)
        #expect(isupport(try harness(accounts: false)).isEmpty, "nobody could show a password")
    }

    @Test("what is uploaded goes to the backend with its token, and has a link")
    func goesUp() throws {
        let harness = try harness()
        _ = harness.accounts.takeCalls()
        #expect(upload(harness) == .success("http://chat.example/files/1"))
        let call = try #require(harness.accounts.takeCalls().last)
        #expect(call.path == "/files" && call.token?.hasPrefix("acc-secret") == true)
        guard case .multipart(_, "file", let file) = call.order.request.body else {
            Issue.record("not a form")
            return
        }
        #expect(file.name == "my cat.png" && file.mime == "image/png" && file.bytes == [1, 1, 1])
    }

    @Test("who has a login of their own there uploads with it, everybody else with the room's")
    func goesUpAsOneself() throws {
        let harness = try harness(guardsFiles: true, ownLogin: true)
        _ = harness.accounts.takeCalls()
        let link = try #require(try upload(harness)?.get())
        #expect(harness.accounts.takeCalls().map(\.token) == ["chefs-own"])
        #expect(link.hasPrefix("https://chat.example/media/f/lobby/"), "the room's backend is asked for the file")
        _ = upload(harness, by: "waiter")
        #expect(harness.accounts.takeCalls().map { $0.token?.hasPrefix("acc-secret") } == [true])
        // Whoever says it says the file, in the room's own backend.
        enter(harness, 1, "ann")
        harness.send(1, "PRIVMSG #lobby :" + link)
        #expect(sent(0, in: harness.takeOutputs()).first?.contains("/files/1") == true)
    }

    @Test("a login of one's own that is refused is not replaced by the room's")
    func ownLoginRefused() throws {
        let harness = try harness(ownLogin: true)
        harness.accounts.secrets[1] = .failure(UpstreamCredentialsFailure("there is no token"))
        _ = harness.accounts.takeCalls()
        #expect(upload(harness) == .failure(.failed("there is no token")))
        #expect(harness.accounts.takeCalls().isEmpty)
    }

    @Test("where the backend wants a token, the link leads through the bridge")
    func guardedLink() throws {
        let harness = try harness(guardsFiles: true)
        let link = try #require(try upload(harness)?.get())
        #expect(link.hasPrefix("https://chat.example/media/f/lobby/") && link.hasSuffix("/files/1/-/my-cat.png"))
        let path = String(link.dropFirst("https://chat.example".count))
        let file = try KnownLinks.links.file(at: path, now: harness.clock.now.wall).get()
        #expect(file.location == .backend("/files/1"))
        var access = FileAccess.unknown
        harness.perform { access = $0.fileAccess(file, now: $1) }
        guard case .order(let order, let generation) = access else {
            Issue.record("\(access)")
            return
        }
        #expect(order.request.target == "http://chat.example/files/1")
        #expect(order.timeout == .seconds(6 * 60 * 60) && order.stallTimeout == .seconds(60))
        #expect(order.authorization.headers.map(\.value) == ["Bearer acc-secret-1"])
        harness.perform { $0.fileCredentialsRefused(order.backend, generation: generation, now: $1) }
        harness.perform { access = $0.fileAccess(file, now: $1) }
        guard case .order(let renewed, let next) = access else {
            Issue.record("\(access)")
            return
        }
        #expect(next > generation && renewed.authorization.headers.map(\.value) == ["Bearer acc-secret-2"])
    }

    @Test("uploads that come to nothing say why")
    func refusals() throws {
        #expect(upload(try harness(), by: "nobody") == .failure(.notAllowed))
        #expect(upload(try harness(), by: "cook", room: "lobby") == .failure(.notAllowed), "cook may not enter")
        #expect(upload(try harness(), room: "#nowhere") == .failure(.notAllowed))
        #expect(upload(try harness(), room: "#LOBBY") == .success("http://chat.example/files/1"))
        #expect(upload(try harness(), by: "chef@phone") == .success("http://chat.example/files/1"))
        #expect(upload(try harness(), bytes: 1001) == .failure(.tooLarge(limit: 1000)))
        for (status, failure) in [
            (413, UploadFailure.tooLarge(limit: nil)), (415, .unsupportedType),
            (400, .failed("a call at chat.example was answered 400 (bad cat)")),
        ] {
            let server = TokenServer()
            server.trouble["/files"] = [TokenServer.answer(status, #"{"detail":"bad cat"}"#)]
            #expect(upload(try harness(server: server)) == .failure(failure))
        }
    }

    @Test(
        "where the backend takes no files they are kept here, and the link is said as text",
        arguments: [("cook", nil), ("chef", "#kitchen")] as [(String, String?)])
    func keptUpload(by name: String, room: String?) throws {
        let harness = try harness()
        enter(harness, 1, "ann", rooms: "#kitchen")
        enter(harness, 2, "bob", rooms: "#kitchen")
        _ = harness.accounts.takeCalls()
        let link = try #require(try upload(harness, by: name, room: room)?.get())
        #expect(harness.accounts.takeCalls().isEmpty)
        let file = try #require(harness.keptFiles.first)
        #expect(file.bytes == [1, 1, 1] && file.name.hasSuffix(".png"))
        #expect(link.hasPrefix("https://chat.example/media/d/kitchen/") && link.hasSuffix("/\(file.name)/-/my-cat.png"))
        let path = String(link.dropFirst("https://chat.example".count))
        #expect(try KnownLinks.links.file(at: path, now: harness.clock.now.wall).get().location == .stored(file.name))
        harness.send(1, "PRIVMSG #kitchen :look " + link)
        let outputs = harness.takeOutputs()
        #expect(sent(1, in: outputs).map { $0.replacing("\\/", with: "/").contains("look " + link) } == [true])
        let seen = outputs.compactMap { output -> String? in
            guard case .line(2, let bytes) = output else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(seen.count { $0.hasSuffix("look " + link) } == 1, "\(seen)")
        #expect(harness.keptUploads.isEmpty, "a link says everything")
    }

    @Test("whoever is in a room gets a link for that one, and a backend that takes files comes first")
    func chosenRoom() throws {
        for (rooms, isKept) in [("#kitchen", true), ("#kitchen,#lobby", false), ("", false)] {
            let harness = try harness()
            harness.connect(1)
            harness.send(1, "PASS waiter:secret")
            for line in ["NICK waiter", "USER u 0 * :r"] + (rooms.isEmpty ? [] : ["JOIN " + rooms]) {
                harness.send(1, line)
            }
            let link = try #require(try upload(harness, by: "waiter")?.get())
            #expect(link.contains("/media/d/kitchen/") == isKept, "\(rooms): \(link)")
        }
    }

    @Test("an upload that finds no room on the disk is refused")
    func diskFull() throws {
        let harness = try harness()
        harness.keepsUploads = false
        #expect(upload(harness, by: "cook") == .failure(.notStored))
        harness.keepsUploads = true
        #expect(try upload(harness, by: "cook")?.get() != nil)
    }

    @Test("an upload's password is checked like that of a client, and failures wait")
    func passwords() throws {
        let harness = try harness()
        for (name, password, isRight) in [
            ("chef", "secret", true), ("CHEF", "secret", true), ("chef@phone", "secret", true),
            ("chef", "wrong", false),
            ("nobody", "secret", false), ("", "", false),
        ] {
            var check: PasswordCheck?
            harness.perform { bridge, _ in check = bridge.uploadCheck(name, Array(password.utf8)) }
            #expect(check?.isCorrect() == isRight)
        }
        var waits: [Duration?] = []
        harness.perform { bridge, now in
            let place = bridge.uploadSource("chef", from: "192.0.2.1")
            for _ in 0..<3 { waits.append(bridge.uploadChecked("chef", at: place, .wrong, now: now)) }
            waits.append(bridge.uploadChecked("chef", at: place, .correct, now: now))
            waits.append(bridge.uploadChecked("chef", at: place, .wrong, now: now))
        }
        #expect(waits == [.zero, .seconds(1), .seconds(2), nil, .zero])
        #expect(!harness.notes.contains { $0.text.contains("secret") })
    }

    @Test("failures count by visitor and account, and names that are none count as one")
    func places() throws {
        let harness = try harness()
        harness.perform { bridge, now in
            func place(_ name: String, _ visitor: String = "2001:db8:1:2::/64") -> UploadSource {
                bridge.uploadSource(name, from: visitor)
            }
            for name in ["CHEF", "chef@1", "chef@2"] { #expect(place(name) == place("chef")) }
            for name in ["somebody", ""] { #expect(place(name) == place("nobody")) }
            let all = [
                place("chef"), place("cook"), place("nobody"), place("chef", "192.0.2.1"),
                bridge.uploadTokenSource(from: "192.0.2.1"),
            ]
            #expect(Set(all.map(\.failures)).count == all.count)
            // Whoever guesses keeps nobody else waiting, neither here nor there.
            for _ in 0..<5 { _ = bridge.uploadChecked("chef", at: place("chef"), .wrong, now: now) }
            #expect(bridge.uploadChecked("cook", at: place("cook"), .wrong, now: now) == .zero)
            #expect(bridge.uploadChecked("chef", at: place("chef", "192.0.2.1"), .wrong, now: now) == .zero)
            #expect(bridge.uploadChecked("chef", at: place("chef"), .wrong, now: now) == .seconds(16))
        }
    }

    @Test("failures of uploads make none on IRC forgotten, however many they are")
    func ownThrottle() throws {
        let harness = try harness()
        harness.perform { bridge, now in
            for _ in 0..<3 {
                _ = bridge.irc.logins.throttle.recordFailure("198.51.100.1", .unknown, now: now.monotonic)
            }
            for number in 0..<LoginThrottle.capacity + 1 {
                let place = bridge.uploadSource("chef", from: "visitor \(number)")
                _ = bridge.uploadChecked("chef", at: place, .wrong, now: now)
            }
            #expect(
                bridge.irc.logins.throttle.recordFailure("198.51.100.1", .unknown, now: now.monotonic) == .seconds(4))
            #expect(bridge.irc.logins.uploadThrottle.count <= LoginThrottle.capacity)
        }
    }

    // MARK: - Saying a link

    @Test(
        "a link that is said is the file; others see the link, the backend the file",
        arguments: ["LINK", "look LINK", "LINK look"])
    func isSaid(_ said: String) throws {
        let harness = try harness(guardsFiles: true)
        enter(harness, 1, "ann")
        enter(harness, 2, "bob")
        let link = try #require(try upload(harness)?.get())
        harness.send(1, "PRIVMSG #lobby :" + said.replacing("LINK", with: link))
        let outputs = harness.takeOutputs()
        let bodies = sent(0, in: outputs)
        #expect(bodies.count == 1 && bodies[0].contains("/files/1"), "\(bodies)")
        #expect(bodies.first?.contains("media") == false, "the link is for people on IRC")
        #expect(said == "LINK" || bodies.first?.contains("look") == true)
        let seen = outputs.compactMap { output -> String? in
            guard case .line(2, let bytes) = output else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(seen.map { $0.drop { $0 != ":" }.contains(link) } == [true], "\(seen)")
    }

    @Test("in the history a said link is a fresh one, and only for the message's own file")
    func isRenewed() throws {
        let harness = try harness(guardsFiles: true)
        enter(harness, 1, "ann")
        let link = try #require(try upload(harness)?.get())
        harness.send(1, "PRIVMSG #lobby :look " + link)
        harness.send(1, "PRIVMSG #lobby :again and again " + link.replacing("/files/1", with: "/files/2"))
        let other = KnownLinks.links.url(
            of: LinkedFile(room: "lobby", location: .backend("/files/2"), name: "a"), now: harness.clock.now.wall)
        harness.send(1, "PRIVMSG #lobby :old " + other)
        harness.advance(by: .seconds(5 * 3600))
        harness.connect(2)
        harness.send(2, "CAP REQ :draft/chathistory batch")
        harness.send(2, "NICK bob")
        harness.send(2, "USER u 0 * :r")
        harness.send(2, "CAP END")
        harness.send(2, "JOIN #lobby")
        _ = harness.takeOutputs()
        harness.send(2, "CHATHISTORY LATEST #lobby * 10")
        let lines = harness.takeLines(2).filter { $0.contains(" PRIVMSG ") }
        #expect(lines.count == 3)
        let words = lines.compactMap { $0.split(separator: " ").last.map(String.init) }
        let opened = words.map { word in
            KnownLinks.links.file(
                at: String(word.dropFirst("https://chat.example".count)), now: harness.clock.now.wall)
        }
        #expect(
            opened == [
                .success(LinkedFile(room: "lobby", location: .backend("/files/1"), name: "my cat.png")),
                .failure(.unknown), .failure(.expired),
            ])
    }

    @Test("a link that was given out before a restart is the file after it")
    func isRemembered() throws {
        let before = try harness(guardsFiles: true)
        let link = try #require(try upload(before)?.get())
        #expect(before.keptUploads.map(\.link) == [link] && before.keptUploads.map(\.backend) == ["main"])
        let harness = try harness(guardsFiles: true, uploads: before.keptUploads)
        enter(harness, 1, "ann")
        harness.send(1, "PRIVMSG #lobby :" + link)
        let bodies = sent(0, in: harness.takeOutputs())
        #expect(bodies.count == 1 && bodies[0].contains("/files/1") && !bodies[0].contains("media"), "\(bodies)")
    }

    @Test("what a backend says of a file is not remembered without end")
    func longNames() throws {
        let server = TokenServer()
        let harness = try harness(server: server)
        let long = ChatAttachment(kind: .file, url: "/f", name: String(repeating: "a", count: UploadRecord.maxBytes))
        #expect(UploadRecord(link: "l", backend: "main", attachment: long).byteCount > UploadRecord.maxBytes)
        _ = upload(harness)
        #expect(harness.keptUploads.allSatisfy { $0.byteCount <= UploadRecord.maxBytes })
    }

    @Test("an address at the guarded server that somebody says opens nothing there")
    func noForeignFiles() throws {
        let harness = try harness(guardsFiles: true)
        enter(harness, 1, "ann")
        enter(harness, 2, "bob")
        harness.send(1, "PRIVMSG #lobby :http://chat.example/files/others.png")
        harness.sendFrame(0, Self.inline(1, "http://chat.example/files/others.png"))
        harness.connect(3)
        harness.send(3, "CAP REQ :draft/chathistory batch")
        harness.send(3, "NICK remy")
        harness.send(3, "USER u 0 * :r")
        harness.send(3, "CAP END")
        harness.send(3, "JOIN #lobby")
        harness.send(3, "CHATHISTORY LATEST #lobby * 10")
        let lines = harness.takeOutputs().compactMap { output -> String? in
            guard case .line(_, let bytes) = output else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(lines.contains { $0.contains("/files/others.png") })
        #expect(!lines.contains { $0.contains("/media/f/") })
    }

    @Test("in a room of another backend it stays a link")
    func elsewhere() throws {
        let harness = try harness(guardsFiles: true)
        enter(harness, 1, "ann", rooms: "#kitchen")
        let link = try #require(try upload(harness, room: "lobby")?.get())
        harness.send(1, "PRIVMSG #kitchen :" + link)
        #expect(sent(1, in: harness.takeOutputs()).last?.contains("my-cat.png") == true)
    }

    // MARK: - Files within messages

    private static func inline(_ number: Int, _ body: String) -> String {
        """
        {"event":"message","message_id":"m\(number)","sender_id":"s1","sender_name":"Remy",\
        "body":"\(body)","sent_at":1795262400}
        """
    }

    @Test("a file within a message is kept, and shown as a link")
    func isKept() throws {
        let harness = try harness()
        enter(harness, 1, "ann")
        harness.sendFrame(0, Self.inline(1, "data:image/png;base64,aGVsbG8="))
        let line = try #require(harness.takeLines(1).last)
        let file = try #require(harness.keptFiles.first)
        #expect(file.bytes == Array("hello".utf8) && file.name.hasSuffix(".png"))
        #expect(
            line.contains(":[image] (5 B) https://chat.example/media/d/lobby/") && line.hasSuffix("/-/\(file.name)"))
        // Whoever asks for it later gets a link that opens then.
        harness.advance(by: .seconds(5 * 3600))
        harness.connect(2)
        harness.send(2, "CAP REQ :draft/chathistory batch")
        harness.send(2, "NICK bob")
        harness.send(2, "USER u 0 * :r")
        harness.send(2, "CAP END")
        harness.send(2, "JOIN #lobby")
        _ = harness.takeOutputs()
        harness.send(2, "CHATHISTORY LATEST #lobby * 10")
        let later = try #require(harness.takeLines(2).first { $0.contains("/media/d/") })
        let path = try #require(later.firstRange(of: "/media/").map { String(later[$0.lowerBound...]) })
        let found = KnownLinks.links.file(at: path, now: harness.clock.now.wall)
        #expect(try found.get().location == .stored(file.name))
    }

    @Test("an address of a kept file that the backend gives is none", arguments: [true, false])
    func keptByWord(media: Bool) throws {
        let harness = try harness(guardsFiles: true, media: media)
        enter(harness, 1, "ann")
        let attachment = ChatAttachment(kind: .image, url: "media:AAAAAAAAAAAAAAAAAAAAAA.png", name: "cat.png")
        let room = harness.bridge.rooms[0]
        harness.perform { bridge, _ in
            let message = ChatMessage(
                id: ChatID("m1"), sender: ChatPerson(id: ChatID("s1"), name: "Remy"), text: "a",
                attachments: [attachment])
            room.show(message, bridge.context)
            room.editReceived(
                ChatEdit(id: ChatID("m1"), text: "b", sender: message.sender, attachments: [attachment]),
                bridge.context)
        }
        let lines = harness.takeLines(1).filter { $0.contains("[image]") }
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasSuffix("[image] cat.png, not available through a link") })
        let msgid = try #require(room.recent.entry(upstreamID: ChatID("m1"))?.msgid)
        #expect(room.archive.message(msgid)?.attachments.map(\.url) == [nil])
    }

    @Test("what is no base64, or not served, is told and not printed", arguments: [true, false])
    func notKept(media: Bool) throws {
        let harness = try harness(media: media)
        enter(harness, 1, "ann")
        harness.sendFrame(0, Self.inline(1, "data:image/png;base64,aGVsbG8" + (media ? "" : "=")))
        #expect(harness.takeLines(1).last?.hasSuffix(":[image, 5 B, inline]") == true)
        #expect(harness.keptFiles.isEmpty)
    }
}
