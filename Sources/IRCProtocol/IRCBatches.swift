/// The batches of a server that are collected until their end.
///
/// Lines of other batches, such as those of a netsplit, are lines like any other.
///
/// Source: IRCv3 batch; multiline; chathistory; labeled-response.
public struct IRCBatches: Sendable {
    public struct Batch: Equatable, Sendable {
        public enum Kind: CaseIterable, Sendable {
            case multiline
            case history
            case labeledResponse
            /// Results of a SEARCH.
            case search
            /// JOINs at once, as after a split of the network.
            case joins
            /// QUITs and PARTs at once.
            case leaves
        }

        let reference: String
        public let kind: Kind
        /// The line that opened it.
        public let head: IRCMessage
        /// Of a multiline batch with the line ends between them, as few as it has; at most ``IRCBatches/maxLines``.
        public fileprivate(set) var lines: [IRCMessage] = []
        fileprivate var byteCount = 0

        /// The one message of a multiline batch; nil: it has no lines.
        ///
        /// The text has line ends, which no line from a server has.
        public var message: IRCMessage? {
            guard var message = lines.first else { return nil }
            var text = ""
            for (index, line) in lines.enumerated() {
                if index > 0, line.tag("draft/multiline-concat") == nil { text += "\n" }
                text += line.params.last ?? ""
            }
            message.tags = head.tags
            message.source = head.source ?? message.source
            if let last = message.params.indices.last { message.params[last] = text }
            return message
        }
    }

    /// Servers send answers one after the other; what opens more than this never closes them.
    static let maxOpen = 16
    static let maxLines = 1000
    /// Bytes of a batch's last parameters.
    static let maxBytes = 256 * 1024

    private let kinds: Set<Batch.Kind>
    private var open: [Batch] = []

    /// - Parameter kinds: those that are collected.
    public init(_ kinds: Set<Batch.Kind>) { self.kinds = kinds }

    /// - Parameter message: a BATCH.
    /// - Returns: the batch that it ends.
    public mutating func received(_ message: IRCMessage) -> Batch? {
        guard let word = message.params.first, let sign = word.first else { return nil }
        let reference = String(word.dropFirst())
        if sign == "-" {
            guard let index = open.firstIndex(where: { $0.reference == reference }) else { return nil }
            return open.remove(at: index)
        }
        guard sign == "+", message.params.count > 1, let kind = Self.names[message.params[1]],
            kinds.contains(kind)
        else { return nil }
        open.removeAll { $0.reference == reference }
        if open.count >= Self.maxOpen { open.removeFirst() }
        open.append(Batch(reference: reference, kind: kind, head: message))
        return nil
    }

    private static let names: [String: Batch.Kind] = [
        "draft/multiline": .multiline, "chathistory": .history, "labeled-response": .labeledResponse,
        "soju.im/search": .search, "netjoin": .joins, "netsplit": .leaves,
    ]

    /// Keeps a line for the end of its batch. What exceeds the limits is dropped.
    ///
    /// - Returns: false: it belongs to no batch that is open here.
    public mutating func take(_ message: IRCMessage) -> Bool {
        guard let reference = message.tag("batch")?.value,
            let index = open.firstIndex(where: { $0.reference == reference })
        else { return false }
        let size = message.params.last?.utf8.count ?? 0
        if open[index].lines.count < Self.maxLines, open[index].byteCount + size <= Self.maxBytes {
            open[index].lines.append(message)
            open[index].byteCount += size
        }
        return true
    }
}
