import Accounts
import BridgeCore
import BridgeTypes
import ChatModel
import IRCServer
import JSONText
import Rooms
import Upstream
import WireBytes

/// Plays a transcript against the pure machines and compares the output with the file.
///
/// Lines that a test gives:
///
///     C1! connects [address]                a client; also implied by its first line
///     C1! connects 192.0.2.1 insecurely     … where no password may cross
///     C1! connects securely [with abc]      … encrypted, with the certificate of that fingerprint
///     C1! connects sts=port=6697            … to a listener that says so of TLS
///     C1! connects over-websocket           … in a browser
///     C1! proves alice:secret               the client's answer to a challenge of SCRAM, with its own nonce
///     C1! is alice [as alice:secret] [in #lobby] [caps: …]    registers and joins; output to this client is not shown
///     C1> JOIN #lobby                       a line of the client
///     C1>| NICK al                          bytes of the client without an end of line
///     C1! closes [reason]                   the connection is gone
///     C1! password right, wrong, unchecked  the verdict, where the test gives it (with: checks=manual)
///     C1! stalls, C1! reads                 the client stops or goes on taking bytes
///     U:lobby! accepts                      the backend opens the WebSocket that was asked for
///     U:lobby! refused 503 [Name: value]    … or answers with a status
///     U:lobby! unreachable reason           … or there is no connection
///     U:lobby! redirects 302 /other         … or points elsewhere
///     U:lobby! proxy 407 Reason             from now on the proxy answers so to CONNECT
///     U:lobby! token T, no-token reason     the result of reading the credentials from now on (with: auth=on)
///     U:lobby! closed 1006                  the transport breaks; any other code is a Close frame
///     U:lobby! silent, U:lobby! talks       pings stay unanswered, or are answered again
///     U:lobby! manual, U:lobby! automatic   connections wait for an answer, or are accepted at once
///     U:lobby< {"event":…}                  a frame of the backend, as it is
///     U:lobby< Remy: hello                  … a message of Remy's; `Remy types`, `Remy read <id1>` likewise
///     U:lobby< echo                         … everything sent since the last echo comes back
///     @t 30.000                             seconds since the beginning
///     B! shutdown
///     B! dies                               the process is gone, and another begins over the same disk (with: store)
///
/// All other lines are output of the bridge: `C1<`, `U:lobby>` and `B<`. Output other than lines and frames is in brackets. With
/// `with: notes=on` the log is included: `B< [room-full: warn room=lobby] more people than …`.
/// Frames are compared as JSON; a value written `*` stands for anything.
public final class TranscriptPlayer {
    private let lines: [String]
    private let header: TranscriptHeader
    private var settings: BridgeSettings
    private var harness: BridgeHarness
    private var deaths: UInt64 = 0
    private var names = TranscriptNames()
    private var scram = TranscriptSCRAM()
    /// The transcript as it came out.
    private var played: [String] = []
    private var sentFrames: [Int: [[UInt8]]] = [:]
    private var messageCount = 0
    private var mistakes: [String] = []

    /// - Throws: if the first line is no header, or has an unknown option.
    public init(text: String) throws {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let first = lines.first, let header = TranscriptHeader(first) else {
            throw TranscriptError.noHeader
        }
        self.header = header
        settings = try header.settings()
        harness = BridgeHarness(settings: settings, store: header.isDurable ? StoreStage() : nil)
    }

    public struct Result {
        /// The transcript with the actual output.
        public var text: String
        /// The differences; nil: none.
        public var failure: String?
    }

    /// Plays all of it.
    public func play() -> Result {
        begin()
        for line in lines {
            let step = TranscriptStep(line)
            if case .output = step { continue }
            if case .time(let seconds) = step {
                pass(until: seconds, line)
                continue
            }
            played.append(line)
            if case .unknown = step { mistakes.append("this is no line of a transcript: \(line)") }
            perform(step)
            record()
        }
        mistakes += harness.violations
        let failure = TranscriptDiff.describe(expected: lines, actual: played)
        let all = mistakes.map { "! " + $0 } + (failure.map { [$0] } ?? [])
        return Result(text: played.joined(separator: "\n"), failure: all.isEmpty ? nil : all.joined(separator: "\n"))
    }

    private func begin() {
        harness.acceptsConnections = header.linksAtOnce
        harness.echoes = header.echoes
        harness.checksPasswords = header.checksPasswords
        harness.answersPings = header.answersPings
        harness.showsNotes = header.showsNotes
        harness.accounts.server = { TranscriptHeader.owner(of: $0.token) }
        harness.start()
        if header.linksAtOnce { _ = harness.takeOutputs() }
    }

    private func beginAnew() {
        mistakes += harness.violations
        deaths += 1
        sentFrames = [:]
        harness = BridgeHarness(
            settings: settings, seed: 1 + deaths, store: header.isDurable ? harness.store.afterCrash : nil,
            startingAt: harness.clock)
        begin()
    }

    // MARK: - Steps

    private func perform(_ step: TranscriptStep) {
        switch step {
        case .prose, .output, .unknown, .time: break
        case .shutdown: harness.shutdown()
        case .death: beginAnew()
        case .casemapping(let mapping): settings.casemapping = mapping
        case .clientLine(let client, let text): clientLine(client, text)
        case .clientEvent(let client, let words): clientEvent(client, words)
        case .frame(let room, let text): withRoom(room) { frame($0, text) }
        case .upstreamEvent(let room, let words): withRoom(room) { upstreamEvent($0, words) }
        }
    }

    /// Advances the clock. Events on the way have their own times.
    private func pass(until seconds: Double, _ line: String) {
        let target = MonotonicInstant(nanoseconds: Int64((seconds * 1e9).rounded()))
        var isWritten = false
        harness.deadlinePassed = { [unowned self] in
            let isThere = harness.clock.now.monotonic == target
            record(after: isWritten ? nil : isThere ? line : "@t " + harness.clock.text) {
                if isThere { isWritten = true }
            }
        }
        harness.advance(to: target)
        harness.deadlinePassed = nil
        if !isWritten { played.append(line) }
        record()
    }

    private func withRoom(_ name: String, _ body: (Int) -> Void) {
        guard let index = settings.rooms.firstIndex(where: { $0.name == name }) else {
            return mistakes.append("there is no room \(name)")
        }
        body(index)
    }

    private func clientLine(_ client: UInt64, _ text: String) {
        if !harness.isConnected(client) { harness.connect(client) }
        if text.hasPrefix("|") {
            harness.receive(client, TranscriptText.bytes(names.reveal(String(text.dropFirst().drop { $0 == " " }))))
        } else {
            harness.receive(client, TranscriptText.bytes(names.reveal(text)) + [0x0D, 0x0A])
        }
    }

    private func clientEvent(_ client: UInt64, _ words: [String]) {
        switch words.first {
        case "connects":
            let certificate = words.firstIndex(of: "with").map { words[$0 + 1] }
            let told = words.first { $0.hasPrefix("sts=") }
            let rest = words.dropFirst().filter {
                !["insecurely", "securely", "over-websocket", "with", certificate, told].contains($0)
            }
            harness.connect(
                client, address: rest.first ?? "127.0.0.1", isLocal: rest.isEmpty,
                allowsLogin: !words.contains("insecurely"),
                security: certificate.map { .certified($0) } ?? (words.contains("securely") ? .encrypted : .plain),
                isWebSocket: words.contains("over-websocket"), sts: told.flatMap(Self.announcement))
        case "proves":
            guard let chunks = scram.proof(client, words.dropFirst().first ?? "") else {
                return mistakes.append("nothing is to be proven here")
            }
            for chunk in chunks { harness.send(client, "AUTHENTICATE " + chunk) }
        case "password": answerPassword(client, words.dropFirst().first ?? "")
        case "is": introduce(client, words.dropFirst().map(TranscriptText.expand))
        case "closes":
            harness.disconnect(client, reason: words.count > 1 ? words.dropFirst().joined(separator: " ") : "Gone")
        case "stalls": harness.setSlow(client, true)
        case "reads": harness.setSlow(client, false)
        default: mistakes.append("a client cannot do this: \(words.joined(separator: " "))")
        }
    }

    /// `sts=port=6697`, `sts=duration=300`.
    private static func announcement(_ word: String) -> STSAnnouncement? {
        let parts = word.split(separator: "=").map(String.init)
        guard parts.count == 3 else { return nil }
        return parts[1] == "port"
            ? UInt16(parts[2]).map { .port($0) } : UInt32(parts[2]).map { .duration(seconds: $0) }
    }

    private func answerPassword(_ client: UInt64, _ word: String) {
        let verdicts: [String: PasswordVerdict] = ["right": .correct, "wrong": .wrong, "unchecked": .unavailable]
        guard let verdict = verdicts[word] else { return mistakes.append("a password is not \"\(word)\"") }
        harness.answerPasswordCheck(client, verdict)
    }

    private func introduce(_ client: UInt64, _ words: [String]) {
        guard let nick = words.first else { return }
        var caps = header.caps
        if let start = words.firstIndex(of: "caps:") { caps = words[(start + 1)...].filter { $0 != "none" } }
        if !harness.isConnected(client) { harness.connect(client) }
        if let place = words.firstIndex(of: "as"), words.indices.contains(place + 1) {
            harness.send(client, "PASS " + words[place + 1])
        }
        harness.send(client, "CAP LS 302")
        if !caps.isEmpty { harness.send(client, "CAP REQ :" + caps.joined(separator: " ")) }
        harness.send(client, "NICK " + nick)
        harness.send(client, "USER \(nick) 0 * :\(nick)")
        harness.send(client, "CAP END")
        if let place = words.firstIndex(of: "in"), words.indices.contains(place + 1) {
            harness.send(client, "JOIN " + words[place + 1])
        }
        record(hiding: client)
    }

    private func upstreamEvent(_ room: Int, _ words: [String]) {
        let rest = words.dropFirst()
        switch words.first {
        case "accepts": harness.accept(room)
        case "refused":
            var headers: [(name: String, value: String)] = []
            if rest.count > 2 { headers = [(String(rest[2].dropLast()), rest[3...].joined(separator: " "))] }
            harness.refuse(room, status: rest.first.flatMap { Int($0) } ?? 500, headers: headers)
        case "redirects":
            // The target shows in the next request, which a test reads from the details.
            harness.refuse(
                room, status: rest.first.flatMap { Int($0) } ?? 302,
                headers: [("Location", rest.dropFirst().joined(separator: " "))])
        case "proxy":
            harness.upstreams[room].proxyAnswer =
                "HTTP/1.1 \(rest.joined(separator: " "))\r\nProxy-Agent: test\r\n\r\n"
        case "token":
            harness.credentials[room] = .success(
                UpstreamCredentials(query: [UpstreamCredentials.Item(name: "token", value: rest.joined())]))
        case "no-token":
            harness.credentials[room] = .failure(UpstreamCredentialsFailure(rest.joined(separator: " ")))
        case "unreachable": harness.endTransport(room, reason: rest.joined(separator: " "))
        case "closed":
            let code = rest.first.flatMap { UInt16($0) } ?? 1006
            if code == 1006 {
                harness.endTransport(room, reason: "the connection was reset")
            } else {
                harness.closeUpstream(room, code: code, reason: rest.dropFirst().joined(separator: " "))
            }
        case "silent": harness.upstreams[room].isSilent = true
        case "talks": harness.upstreams[room].isSilent = false
        case "manual": harness.acceptsConnections = false
        case "automatic": harness.acceptsConnections = true
        default: mistakes.append("a backend cannot do this: \(words.joined(separator: " "))")
        }
    }

    private func frame(_ room: Int, _ text: String) {
        let text = names.reveal(text)
        if text == "echo" {
            let frames = sentFrames[room] ?? []
            sentFrames[room] = []
            for frame in frames { harness.sendFrame(room, frame) }
        } else if text.hasPrefix("{"), !text.hasPrefix("{}") {
            harness.sendFrame(room, TranscriptText.bytes(text))
        } else if text.hasSuffix(" types") {
            harness.sendFrame(room, envelope("typing", String(text.dropLast(6)), id: "typing", body: ""))
        } else if let match = text.wholeMatch(of: /(\S+) read (\S+)/) {
            harness.sendFrame(room, envelope("readReceipt", String(match.1), id: String(match.2), body: ""))
        } else if let colon = text.firstRange(of: ": ") {
            messageCount += 1
            harness.sendFrame(
                room,
                envelope(
                    "message", String(text[..<colon.lowerBound]), id: "m\(messageCount)",
                    body: String(decoding: TranscriptText.bytes(String(text[colon.upperBound...])), as: UTF8.self)))
        } else {
            harness.sendFrame(room, TranscriptText.bytes(text))
        }
    }

    /// A frame as the backend's apps write it. People's ids are made of their names.
    private func envelope(_ event: String, _ sender: String, id: String, body: String) -> [UInt8] {
        let seconds = Double(harness.clock.now.wall.milliseconds) / 1000
        return JSONValue.object([
            JSONValue.Member("event", .string(event)), JSONValue.Member("message_id", .string(id)),
            JSONValue.Member("sender_id", .string("id-of-" + sender)),
            JSONValue.Member("sender_name", .string(sender)), JSONValue.Member("body", .string(body)),
            JSONValue.Member("sent_at", .number(seconds)),
        ]).bytes
    }

    // MARK: - Recording

    /// Records events, after `heading` if there are any.
    private func record(after heading: String? = nil, hiding hidden: UInt64? = nil, _ didWrite: () -> Void = {}) {
        let shown = harness.takeOutputs().compactMap { line(for: $0, hiding: hidden) }
        guard !shown.isEmpty else { return }
        if let heading, played.last(where: { $0.hasPrefix("@t ") }) != heading { played.append(heading) }
        played += shown
        didWrite()
    }

    private func line(for output: BridgeHarness.Output, hiding hidden: UInt64?) -> String? {
        switch output {
        case .line(let client, let bytes):
            let text = TranscriptText.show(bytes)
            names.learn(line: text)
            return client == hidden ? nil : "C\(client)< " + (scram.show(client, text) ?? names.conceal(text))
        case .clientClosed(let client): return "C\(client)< [closed]"
        case .readingPaused(let client): return "C\(client)< [reading paused]"
        case .readingResumed(let client): return "C\(client)< [reading resumed]"
        case .listenersClosed: return "B< [listeners closed]"
        case .stopped: return "B< [stopped]"
        case .note(let note): return "B< " + names.conceal(Self.show(note))
        case .upstream(let room, let event): return "U:\(settings.rooms[room].name)> " + describe(event, room)
        }
    }

    /// `[room-full: warn room=lobby] more people than …`.
    private static func show(_ note: BridgeNote) -> String {
        "[\(note.event): \(BridgeHarness.describe(note.level, note.metadata))] \(note.text)"
    }

    private func describe(_ event: ScriptedUpstream.Event, _ room: Int) -> String {
        switch event {
        case .connected: return "[connect]"
        case .detail(let text): return "[\(text)]"
        case .ping: return "[ping]"
        case .close(let code): return "[close \(code)]"
        case .disconnected: return "[disconnect]"
        case .protocolBroken(let why): return "[broken: \(why)]"
        case .frame(let bytes, _):
            sentFrames[room, default: []].append(bytes)
            if let json = try? JSONValue(parsing: bytes) { names.learn(frame: json) }
            return names.conceal(TranscriptText.show(bytes))
        }
    }
}

public enum TranscriptError: Error {
    /// The first line of a transcript is `# title`.
    case noHeader
}
