public import JSONText
import WireBytes

/// A frame between a backend and its own app, in either direction.
public struct RecordedFrame: Equatable, Sendable {
    /// Milliseconds since 1970; nil: the recording does not say it.
    public var at: Int64?
    /// From the app to the backend.
    public var isSent: Bool
    /// The payload; that of a binary frame where it is UTF-8.
    public var text: String
    public var isBinary: Bool

    public init(at: Int64? = nil, isSent: Bool, text: String, isBinary: Bool = false) {
        self.at = at
        self.isSent = isSent
        self.text = text
        self.isBinary = isBinary
    }
}

/// A call of the app over HTTP whose answer is JSON.
public struct RecordedCall: Equatable, Sendable {
    public var method: String
    public var url: String
    public var status: Int
    public var answer: JSONValue

    public init(method: String, url: String, status: Int, answer: JSONValue) {
        self.method = method
        self.url = url
        self.status = status
        self.answer = answer
    }
}

/// A header field of the app's handshake that may show a token, without it.
public struct RecordedHeader: Equatable, Sendable {
    public var name: String
    /// The value, with `{token}` in place of the secret.
    public var format: String

    /// Whether it is a cookie, which may have nothing to do with the log-in.
    public var isCookie: Bool { name.lowercased() == "cookie" }

    public init(name: String, format: String) { (self.name, self.format) = (name, format) }

    /// Nil for a field that shows no token.
    ///
    /// - Parameter value: as it was sent, or with ``LearnMark/token`` in place of the secret.
    public init?(name: String, value: String) {
        if value.contains(LearnMark.token) {
            self.init(name: name, format: value)
            return
        }
        let lowered = name.lowercased()
        guard !value.isEmpty, !lowered.hasPrefix("sec-websocket-") else { return nil }
        guard lowered == "authorization" || lowered == "cookie" || Words.isToken(Words.plain(name), value) else {
            return nil
        }
        let words = value.split(separator: " ")
        // A scheme and what it is about, as RFC 9110 §11.6.2 has it.
        let hasScheme = lowered == "authorization" && words.count == 2 && words[0].utf8.allSatisfy(ASCII.isLetter)
        self.init(name: name, format: hasScheme ? "\(words[0]) \(LearnMark.token)" : LearnMark.token)
    }
}

/// What a person is asked to do in the app, one after another. The texts are found again in the frames.
public enum LearnStep: String, CaseIterable, Sendable {
    case open, say, hear, type, read, reply, react, edit, delete, upload, leave

    /// What the person shall do.
    public var request: String {
        switch self {
        case .open: "open the app and go into the room"
        case .say: "say \(LearnMark.own)"
        case .hear:
            "have another person say \(LearnMark.other), and something else in another room, if there is one"
        case .type: "type a few letters, wait a moment, and take them away again; have the other person do so too"
        case .read: "read what the other person said, and have them read yours"
        case .reply: "answer \(LearnMark.other) with \(LearnMark.reply)"
        case .react: "put \(LearnMark.emoji) on \(LearnMark.other)"
        case .edit: "change \(LearnMark.own) to \(LearnMark.edited)"
        case .delete: "delete \(LearnMark.edited)"
        case .upload: "upload a small picture"
        case .leave: "leave the room, or have the other person leave it"
        }
    }
}

/// Texts by which frames are found.
public enum LearnMark {
    public static let own = "learn-1"
    public static let other = "learn-2"
    public static let reply = "learn-3"
    public static let edited = "learn-1b"
    public static let emoji = "👍"
    /// Where a secret stood that is not recorded.
    public static let token = "{token}"

    static let all = [own, other, reply, edited]
}

/// What a connection carried while a person used the app.
public struct Recording: Equatable, Sendable {
    public struct Moment: Equatable, Sendable {
        public var step: LearnStep
        /// How many frames came before it.
        public var frame: Int

        public init(_ step: LearnStep, frame: Int) {
            self.step = step
            self.frame = frame
        }
    }

    /// The socket's address; nil: unknown.
    public var url: String?
    /// The field of the handshake that shows a token.
    public private(set) var header: RecordedHeader?
    public var frames: [RecordedFrame] = []
    public var calls: [RecordedCall] = []
    public var moments: [Moment] = []

    public init() {}

    /// The person begins this step.
    public mutating func mark(_ step: LearnStep) { moments.append(.init(step, frame: frames.count)) }

    /// The first address counts, with the header fields that it was asked for with.
    public mutating func open(_ url: String, headers: [(name: String, value: String)] = []) {
        guard self.url == nil else { return }
        self.url = url
        let shown = headers.compactMap { RecordedHeader(name: $0.name, value: $0.value) }
        header = shown.first { !$0.isCookie } ?? shown.first
    }

    public mutating func add(_ frame: RecordedFrame) { frames.append(frame) }

    public mutating func add(_ call: RecordedCall) { calls.append(call) }

    /// The frames as lines that ``init(lines:)`` reads.
    public var lines: String {
        var lines: [String] = []
        if let url { lines.append(JSONValue.object([.init("url", .string(url))]).text) }
        if let header {
            let field = JSONValue.object([.init(header.name, .string(header.format))])
            lines.append(JSONValue.object([.init("header", field)]).text)
        }
        for (index, frame) in frames.enumerated() {
            for moment in moments where moment.frame == index { lines.append(Self.line(moment)) }
            var members = [JSONValue.Member("dir", .string(frame.isSent ? "out" : "in"))]
            if let at = frame.at { members.append(.init("at", .integer(at))) }
            if frame.isBinary { members.append(.init("op", .string("binary"))) }
            let json = (try? JSONValue(parsing: frame.text)).flatMap { $0.object != nil || $0.array != nil ? $0 : nil }
            members.append(.init("frame", json ?? .string(frame.text)))
            lines.append(JSONValue.object(members).text)
        }
        for moment in moments where moment.frame >= frames.count { lines.append(Self.line(moment)) }
        for call in calls {
            let members: [JSONValue.Member] = [
                .init("method", .string(call.method)), .init("url", .string(call.url)),
                .init("status", .integer(Int64(call.status))), .init("answer", call.answer),
            ]
            lines.append(JSONValue.object([.init("http", .object(members))]).text)
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func line(_ moment: Moment) -> String {
        JSONValue.object([.init("step", .string(moment.step.rawValue))]).text
    }
}

// MARK: - Reading

extension Recording {
    /// Reads a HAR file of a browser, or lines of JSON.
    ///
    /// Of a HAR the connection with the most frames counts. A line is `{"dir": "in", "at": milliseconds, "frame": …}`
    /// with `"out"` for what the app sent, `{"step": "say"}`, `{"url": …}`, `{"header": {name: format}}`, `{"http": {…}}`, or a
    /// frame that came in.
    /// `frame` is JSON, or a string for what is none.
    ///
    /// Source: HAR 1.2; `_webSocketMessages` as Chromium and Firefox write them.
    public init(parsing bytes: [UInt8], limits: JSONLimits) {
        self.init()
        if let har = try? JSONValue(parsing: bytes, limits: limits), let entries = har["log"]?["entries"]?.array {
            take(har: entries)
            return
        }
        for line in bytes.split(separator: UInt8(ascii: "\n")) { take(line: Array(line), limits) }
    }

    private mutating func take(line bytes: [UInt8], _ limits: JSONLimits) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.contains(where: { $0 > 0x20 }) else { return }
        guard let json = try? JSONValue(parsing: bytes, limits: limits) else {
            frames.append(RecordedFrame(isSent: false, text: text))
            return
        }
        if let call = json["http"], call.object != nil {
            calls.append(
                RecordedCall(
                    method: call["method"]?.string ?? "GET", url: call["url"]?.string ?? "",
                    status: Int(call["status"]?.integer ?? 200), answer: call["answer"] ?? .null))
        } else if let step = json["step"]?.string.flatMap(LearnStep.init(rawValue:)), json.object?.count ?? 0 <= 2 {
            moments.append(Moment(step, frame: frames.count))
        } else if let found = RecordedFrame(line: json) {
            frames.append(found)
        } else if let url = json["url"]?.string, json.object?.count == 1 {
            self.url = url
        } else if let field = json["header"]?.object?.first, json.object?.count == 1, let format = field.value.string {
            header = RecordedHeader(name: field.key, format: format)
        } else if json["dir"] == nil {
            frames.append(RecordedFrame(isSent: false, text: text))
        }
    }

    private mutating func take(har entries: [JSONValue]) {
        let sockets = entries.filter { $0["_webSocketMessages"]?.array != nil }
        let most = sockets.max {
            ($0["_webSocketMessages"]?.array?.count ?? 0) < ($1["_webSocketMessages"]?.array?.count ?? 0)
        }
        if let request = most?["request"], let url = request["url"]?.string {
            let headers = (request["headers"]?.array ?? []).compactMap { field -> (name: String, value: String)? in
                guard let name = field["name"]?.string, let value = field["value"]?.string else { return nil }
                return (name, value)
            }
            open(url, headers: headers)
        }
        for message in most?["_webSocketMessages"]?.array ?? [] {
            guard let data = message["data"]?.string else { continue }
            let isBinary = message["opcode"]?.integer == 2
            let text = isBinary ? Base64.decode(data).map { String(decoding: $0, as: UTF8.self) } ?? data : data
            frames.append(
                RecordedFrame(
                    at: message["time"]?.double.flatMap { $0.magnitude < 1e12 ? Int64($0 * 1000) : nil },
                    isSent: message["type"]?.string == "send", text: text, isBinary: isBinary))
        }
        for entry in entries where entry["_webSocketMessages"] == nil {
            guard let request = entry["request"], let url = request["url"]?.string,
                let content = entry["response"]?["content"], let text = content["text"]?.string
            else { continue }
            let bytes = content["encoding"]?.string == "base64" ? Base64.decode(text) ?? [] : Array(text.utf8)
            guard let answer = try? JSONValue(parsing: bytes), answer.object != nil || answer.array != nil else {
                continue
            }
            calls.append(
                RecordedCall(
                    method: request["method"]?.string ?? "GET", url: url,
                    status: Int(entry["response"]?["status"]?.integer ?? 0), answer: answer))
        }
    }
}

extension RecordedFrame {
    /// A line of a recording; nil for another line.
    public init?(line json: JSONValue) {
        guard let direction = json["dir"]?.string, direction == "in" || direction == "out" else { return nil }
        let text: String
        if let encoded = json["frame_b64"]?.string, let bytes = Base64.decode(encoded) {
            text = String(decoding: bytes, as: UTF8.self)
        } else if let frame = json["frame"], !frame.isNull {
            text = frame.string ?? frame.text
        } else {
            return nil
        }
        self.init(
            at: json["at"]?.integer, isSent: direction == "out", text: text, isBinary: json["op"]?.string == "binary")
    }
}
