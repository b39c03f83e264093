import BridgeTypes
import ChatModel
import Configuration
import DescribedDialects
import Dialects
import JSONText
import Learning

/// `chatbridge check --frame FILE`: decodes a backend's frames with a room's dialect; with `--event` encodes events.
///
/// A line of output for each frame or event, with the keys of the codec fixtures: `event` or `drop`, `frame` or
/// `frames`. A described dialect adds the matching rule as `rule`, and `other_room` where a frame is of another room; what
/// its pointers found in none of the frames stands behind `warning:` and `note:` on standard error.
struct FrameCheck {
    let dialect: any Dialect
    let context: DialectContext

    /// - Returns: 0; ``ExitCode/data`` when a frame or event gave nothing; ``ExitCode/noInput`` without a file.
    static func run(
        _ configuration: Configuration, _ options: CheckOptions, environment: ConfigurationEnvironment,
        output: OfflineCommands.Output, errors: OfflineCommands.Output
    ) -> Int32 {
        let check: FrameCheck
        switch make(configuration, room: options.room) {
        case .success(let made): check = made
        case .failure(let complaint):
            errors("chatbridge: \(complaint.message)\n")
            return ExitCode.usage
        }
        let path = options.frame ?? options.event ?? "-"
        let bytes: [UInt8]
        switch environment.readFile(path == "-" ? "/dev/stdin" : path) {
        case .success(let read): bytes = read
        case .failure(.notFound):
            errors("chatbridge: there is no file \"\(path)\"\n")
            return ExitCode.noInput
        case .failure(.unreadable(let reason)):
            errors("chatbridge: \(path) cannot be read: \(reason)\n")
            return ExitCode.noInput
        }
        guard bytes.count <= TOMLReader.maxByteCount else {
            errors("chatbridge: \(path) is larger than \(TOMLReader.maxByteCount / 1024) KiB\n")
            return ExitCode.noInput
        }
        let documents = recorded(bytes) ?? documents(bytes)
        if documents.isEmpty {
            errors("chatbridge: \(path) has nothing in it\n")
            return ExitCode.noInput
        }
        var isComplete = true
        var recording = Recording()
        var messageIDs: [Int64: [Int: String]] = [:]
        var receiptIDs: [Int64: [Int: [String]]] = [:]
        var findings = (check.dialect as? CustomDialect).map {
            CustomFindings($0) { NearestName.suggestion(for: $0, among: $1) }
        }
        for document in documents {
            let event = event(document, isAsked: options.event != nil)
            let line = event.map(check.encoded) ?? check.decoded(document)
            if line["drop"] != nil { isComplete = false }
            output(line.text + "\n")
            guard event == nil else { continue }
            document.withUnsafeBytes { findings?.look(at: $0) }
            let events = line["event"].map { $0.array ?? [$0] } ?? []
            for event in events {
                guard let rule = line["rule"]?.integer else { continue }
                if event["kind"]?.string == "message", let id = event["id"]?.string {
                    messageIDs[rule, default: [:]][recording.frames.count] = id
                } else if event["kind"]?.string == "receipt", event["state"]?.string == "sent" {
                    receiptIDs[rule, default: [:]][recording.frames.count] = event["ids"]?.array?.compactMap(\.string)
                }
            }
            recording.add(RecordedFrame(isSent: false, text: String(decoding: document, as: UTF8.self)))
        }
        for (rule, ids) in messageIDs.sorted(by: { $0.key < $1.key }) {
            if let doubt = Learner.doubt(ids: ids, in: recording) {
                errors("warning: rule \(rule) reads the id of messages there: \(doubt)\n")
            }
        }
        let known = Set(messageIDs.values.flatMap(\.values))
        for (rule, ids) in receiptIDs.sorted(by: { $0.key < $1.key }) {
            if let place = Learner.messageIDs(receipts: ids, messages: known, in: recording) {
                errors(
                    "warning: rule \(rule) reads ids of sent messages that no message among the frames has; "
                        + "\(place) has those of messages\n")
            }
        }
        for finding in findings?.findings ?? [] {
            switch finding {
            case .warning(let sentence): errors("warning: \(sentence)\n")
            case .note(let sentence): errors("note: \(sentence)\n")
            }
        }
        return isComplete ? ExitCode.ok : ExitCode.data
    }

    private struct Complaint: Error {
        var message: String
    }

    /// The room that is named, or any when all have one dialect.
    private static func make(_ configuration: Configuration, room name: String?) -> Result<FrameCheck, Complaint> {
        let rooms = configuration.rooms
        let names = rooms.map(\.name)
        guard let first = rooms.first else { return .failure(Complaint(message: "there is no room")) }
        var room = first
        if let name {
            guard let found = rooms.first(where: { $0.name == name || $0.channel == name }) else {
                let hint = NearestName.hint(for: name, among: names)
                return .failure(
                    Complaint(
                        message: "there is no room \"\(name)\"\(hint); there are: \(names.joined(separator: ", "))"))
            }
            room = found
        } else if rooms.contains(where: { $0.dialect != first.dialect }) {
            return .failure(
                Complaint(message: "say whose dialect with --room; there are: \(names.joined(separator: ", "))"))
        }
        guard let dialect = try? configuration.dialect(of: room) else {
            return .failure(Complaint(message: "there is no dialect \"\(room.dialect)\""))
        }
        return .success(FrameCheck(dialect: dialect, context: DialectContext(room: room.upstreamRoom)))
    }

    /// The frames that came in, of a recording or a HAR; nil: it is neither.
    private static func recorded(_ bytes: [UInt8]) -> [[UInt8]]? {
        let first = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1).first.map { Array($0) }
        let line = first.flatMap { try? JSONValue(parsing: $0) }
        let isRecording = line.map { line in
            RecordedFrame(line: line) != nil || line["step"]?.string.flatMap(LearnStep.init(rawValue:)) != nil
                || line["url"]?.string != nil && line.object?.count == 1
        }
        guard isRecording == true || (try? JSONValue(parsing: bytes))?["log"]?["entries"] != nil else { return nil }
        let recording = Recording(parsing: bytes, limits: JSONLimits(maxBytes: TOMLReader.maxByteCount))
        return recording.frames.filter { !$0.isSent }.map { Array($0.text.utf8) }
    }

    /// The whole file when it is one document, else each line that is not blank.
    private static func documents(_ bytes: [UInt8]) -> [[UInt8]] {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map { line in
            var line = line
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            return Array(line)
        }.filter { !$0.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
        guard lines.count > 1 else { return lines }
        return (try? JSONValue(parsing: bytes)) == nil ? lines : [bytes]
    }

    /// The event of a document that is one, or `{"event": …}` around one.
    private static func event(_ document: [UInt8], isAsked: Bool) -> JSONValue? {
        guard let json = try? JSONValue(parsing: document) else { return isAsked ? .null : nil }
        if let inner = json["event"], inner["kind"]?.string != nil { return inner }
        return isAsked ? json : nil
    }

    // MARK: - Both directions

    private func decoded(_ frame: [UInt8]) -> JSONValue {
        frame.withUnsafeBytes { bytes in
            var members: [JSONValue.Member] = []
            let decoded = dialect.decode(bytes, isBinary: false, context: context)
            if case .dropped(let reason, let typeKey) = decoded {
                members.append(.init("drop", .string(reason.rawValue)))
                if let typeKey { members.append(.init("type", .string(typeKey))) }
            } else {
                let values = (decoded.events ?? []).map(\.canonicalJSON)
                members.append(.init("event", values.count == 1 ? values[0] : .array(values)))
            }
            if let explanation = (dialect as? CustomDialect)?.explain(bytes, context: context) {
                if let rule = explanation.rule { members.append(.init("rule", .integer(Int64(rule)))) }
                if let field = explanation.field { members.append(.init("field", .string(field))) }
                if let room = explanation.otherRoom { members.append(.init("other_room", .string(room))) }
            }
            if dialect.traits.repliesByRule {
                let replies = dialect.automaticReplies(to: bytes, context: context)
                if !replies.isEmpty { members.append(.init("reply", .array(replies.map(Self.json)))) }
            }
            return .object(members)
        }
    }

    private func encoded(_ event: JSONValue) -> JSONValue {
        let command: ChatCommand
        do throws(CanonicalEventError) {
            command = try ChatCommand(canonical: event)
        } catch {
            return .object([
                .init("drop", .string(DropReason.wrongType.rawValue)), .init("why", .string(error.description)),
            ])
        }
        let encoded = dialect.encode(command, context: context)
        if case .unsupported(let reason) = encoded { return .object([.init("drop", .string(reason.rawValue))]) }
        let frames = encoded.frames ?? []
        var members = [
            frames.count == 1
                ? JSONValue.Member("frame", Self.json(frames[0]))
                : JSONValue.Member("frames", .array(frames.map(Self.json)))
        ]
        if frames.contains(where: \.isBinary) { members.append(.init("op", .string("binary"))) }
        return .object(members)
    }

    /// The frame's JSON, or its text where it is none.
    private static func json(_ frame: EncodedFrame) -> JSONValue {
        (try? JSONValue(parsing: frame.bytes)) ?? .string(String(decoding: frame.bytes, as: UTF8.self))
    }
}
