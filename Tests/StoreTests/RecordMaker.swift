import BridgeTestSupport
import ChatModel

/// Records with every field set or not, and with texts that are hard to store.
struct RecordMaker {
    var random: SeededGenerator

    private static let texts = [
        "", "a", "hello world", "\0", "a\0b", "\r\n", "'; DROP TABLE rooms; --", "\"quoted\\", "🧑‍🚀👩🏽‍🌾", "e\u{301}", "é",
        "\u{FEFF}bom", "\u{202E}bidi", "\u{10FFFF}", "\u{FFFD}", "NULL", "1", "\u{1}ACTION waves\u{1}",
        String(repeating: "long ", count: 2000),
    ]

    mutating func chance() -> Bool { Bool.random(using: &random) }

    mutating func text() -> String {
        if Int.random(in: 0..<3, using: &random) > 0 { return Self.texts.randomElement(using: &random) ?? "" }
        let scalars = (0..<Int.random(in: 0...12, using: &random)).compactMap { _ in
            Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &random))
        }
        return String(String.UnicodeScalarView(scalars))
    }

    mutating func maybeText() -> String? { chance() ? text() : nil }

    mutating func number() -> Int64 {
        [0, 1, -1, .max, .min, Int64.random(in: .min ... .max, using: &random)].randomElement(using: &random) ?? 0
    }

    mutating func maybeNumber() -> Int64? { chance() ? number() : nil }

    mutating func time() -> ChatTimestamp { ChatTimestamp(milliseconds: number()) }
    mutating func maybeTime() -> ChatTimestamp? { chance() ? time() : nil }

    mutating func id() -> ChatID {
        let uuid = "0e5a7f3c-1111-4222-8333-" + String(UInt64.random(in: 1 << 44..<1 << 48, using: &random), radix: 16)
        return switch Int.random(in: 0..<4, using: &random) {
        case 0: ChatID(uuid)
        case 1: ChatID(uuid.uppercased())
        case 2: ChatID(uuid.replacingOccurrences("e", with: "E"))
        default: ChatID("\(UInt64.random(in: 0 ... .max, using: &random))-" + text())
        }
    }

    mutating func maybeID() -> ChatID? { chance() ? id() : nil }

    mutating func person() -> ChatPerson { ChatPerson(id: maybeID(), name: maybeText()) }

    mutating func attachments() -> [ChatAttachment] {
        (0..<max(0, Int.random(in: -2...2, using: &random))).map { _ in
            ChatAttachment(
                kind: ChatAttachment.Kind.allCases.randomElement(using: &random) ?? .file, url: maybeText(),
                name: maybeText(), size: maybeNumber(), mime: maybeText(), thumbnail: maybeText(),
                width: maybeNumber(), height: maybeNumber(),
                duration: chance()
                    ? [0, 1.5, -0.1, 1e300, .leastNonzeroMagnitude, 12].randomElement(using: &random) : nil,
                inline: maybeText(), fileID: maybeText())
        }
    }

    mutating func tags() -> [StoredTag] {
        (0..<max(0, Int.random(in: -2...2, using: &random))).map { _ in StoredTag(name: text(), value: maybeText()) }
    }

    mutating func message(sequence: Int64) -> StoredMessage {
        StoredMessage(
            kind: StoredMessage.Kind.allCases.randomElement(using: &random) ?? .message, sequence: sequence,
            msgid: "\(sequence)." + text(), upstreamID: maybeID(), sender: person(), at: time(), backendAt: maybeTime(),
            gapFrom: maybeTime(), nick: text(), source: text(), account: maybeText(), text: text(),
            sentAs: maybeText(), attachments: attachments(), isEncrypted: chance(), replyTo: maybeText(),
            clientTags: tags(), author: maybeID(), client: maybeText(), isTakenBack: chance())
    }

    mutating func choices(of account: String) -> StoredChoices {
        StoredChoices(
            account: account, receipts: maybeText(), wantsNotices: chance(),
            rejoins: chance() ? chance() : nil,
            mutes: (0..<max(0, Int.random(in: -2...3, using: &random))).map { _ in
                let target: StoredMute.Target =
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: .remote(backend: text(), person())
                    case 1: .account(text())
                    default: .nick(text())
                    }
                return StoredMute(target: target, nick: text())
            })
    }

    mutating func entry(in room: StoredRoomKey) -> StoredOutboxEntry {
        StoredOutboxEntry(
            id: id(), room: room, link: text(), sender: person(), sentAs: text(), attachments: attachments(),
            replyTo: maybeID(), acceptedAt: time(), author: id(), nick: text(), source: text(), account: maybeText(),
            client: maybeText(), text: text(), clientTags: tags(),
            state: StoredOutboxEntry.State.allCases.randomElement(using: &random) ?? .queued,
            confirmedPieces: Int.random(in: 0...9, using: &random), reason: maybeText())
    }
}

extension String {
    fileprivate func replacingOccurrences(_ character: Character, with other: Character) -> String {
        String(map { $0 == character ? other : $0 })
    }
}
