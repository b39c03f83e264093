import ChatModel
import Glibc
import IRCServer
import JSONText
import Media
import Threads

/// Recent uploads, stored in the state directory: their links still refer to files after a restart.
///
/// One line of JSON for each upload, appended as it comes; when there are too many, the file is written anew with those that
/// count. A line that is not whole, which a crash or a full disk may leave, is passed over. Blocks on the disk.
final class UploadJournal: Sendable {
    static let fileName = "uploads.jsonl"
    /// Largest file that is read, in bytes: lines have some 500, and there are at most twice as many as are remembered.
    static let maxFileBytes = 64 * 1024 * 1024

    private let directory: String
    private let capacity: Int
    /// Lines in the file; nil: it was not read yet.
    private let lineCount = Locked<Int?>(nil)

    init(stateDirectory: String, capacity: Int = UploadRecord.capacity) {
        directory = stateDirectory
        self.capacity = capacity
    }

    private var path: String { directory + "/" + Self.fileName }

    /// The newest uploads, in order.
    func load() -> [UploadRecord] {
        lineCount.withLock { count in
            let (records, lines) = read()
            count = lines
            return records
        }
    }

    /// - Returns: nil, or the error as a sentence.
    func append(_ record: UploadRecord) -> String? {
        lineCount.withLock { count in
            guard StateFile.makeDirectory(directory) else { return StateFile.lastError(directory) }
            let known = count ?? read().lines
            count = known + 1
            guard known + 1 > 2 * capacity else { return StateFile.write(Self.line(record), to: path, O_APPEND) }
            let newest = (read().records + [record]).suffix(capacity)
            if let why = StateFile.replace(path, with: newest.flatMap(Self.line)) { return why }
            count = newest.count
            return nil
        }
    }

    private func read() -> (records: [UploadRecord], lines: Int) {
        guard access(path, F_OK) == 0 else { return ([], 0) }
        // An unusable file: nothing of it is read, and the next upload begins anew.
        guard let bytes = StateFile.read(path, maxBytes: Self.maxFileBytes) else { return ([], 2 * capacity) }
        let lines = bytes.split(separator: 0x0A)
        return (lines.suffix(2 * capacity).compactMap { Self.record(Array($0)) }.suffix(capacity), lines.count)
    }

    // MARK: - Contents

    /// With a line end before it as well: the previous line may be incomplete.
    static func line(_ record: UploadRecord) -> [UInt8] {
        let file = record.attachment
        var members = [
            JSONValue.Member("link", .string(record.link)), JSONValue.Member("backend", .string(record.backend)),
            JSONValue.Member("kind", .string(file.kind.rawValue)),
        ]
        func add(_ name: String, _ text: String?) {
            if let text { members.append(JSONValue.Member(name, .string(text))) }
        }
        func add(_ name: String, _ number: Int64?) {
            if let number { members.append(JSONValue.Member(name, .integer(number))) }
        }
        add("url", file.url)
        add("name", file.name)
        add("mime", file.mime)
        add("thumbnail", file.thumbnail)
        add("file_id", file.fileID)
        add("size", file.size)
        add("width", file.width)
        add("height", file.height)
        add("milliseconds", file.duration.flatMap { Int64(exactly: ($0 * 1000).rounded()) })
        return [0x0A] + JSONValue.object(members).bytes + [0x0A]
    }

    static func record(_ line: [UInt8]) -> UploadRecord? {
        guard let json = try? JSONValue(parsing: line), let link = json["link"]?.string, !link.isEmpty,
            let backend = json["backend"]?.string,
            let kind = json["kind"]?.string.flatMap({ ChatAttachment.Kind(rawValue: $0) })
        else { return nil }
        let file = ChatAttachment(
            kind: kind, url: json["url"]?.string, name: json["name"]?.string, size: json["size"]?.integer,
            mime: json["mime"]?.string, thumbnail: json["thumbnail"]?.string, width: json["width"]?.integer,
            height: json["height"]?.integer, duration: json["milliseconds"]?.integer.map { Double($0) / 1000 },
            fileID: json["file_id"]?.string)
        return UploadRecord(link: link, backend: backend, attachment: file)
    }
}
