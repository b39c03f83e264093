public import ChatModel
public import Dialects
import JSONText

/// Any backend that speaks JSON, described instead of programmed: where things are in its frames, and what ours look like.
///
/// All reading of the description happens when it is loaded; a frame is walked once along the pointers that its rules use.
///
/// Source: docs/backends/custom.md.
public struct CustomDialect: Dialect {
    /// Largest frame that we send, in bytes: Apple's WebSocket client refuses longer messages unless told otherwise.
    static let maxFrameBytes = 1024 * 1024

    public let definition: CustomDefinition
    public let traits: DialectTraits

    /// - Parameter name: the name in the configuration.
    public init(_ definition: CustomDefinition, name: String = "custom") {
        self.definition = definition
        traits = Self.traits(definition, name)
    }

    private static func traits(_ definition: CustomDefinition, _ name: String) -> DialectTraits {
        let templates = definition.templates
        let rules = definition.rules.rules
        let namesSender = !definition.messageNames.isDisjoint(with: [.sender, .senderID, .senderName])
        let givesID = definition.messageNames.contains(.id)
        let messages = rules.filter { $0.kind == .message }
        let readsID = messages.contains { $0.fields.has(.id) || $0.fields.has(.ref) }

        let confirmation: DialectTraits.Confirmation =
            switch definition.echo {
            case .byID: .echoByID
            case .byText: .echoByText
            case .ack: .receipt
            case .none where definition.hasSentReceipt, .auto where definition.hasSentReceipt: .receipt
            case .none: .none
            case .auto: givesID && readsID ? .echoByID : .none
            }
        let origin: DialectTraits.MessageIDOrigin =
            switch confirmation {
            case .echoByID: messages.contains { $0.fields.has(.ref) } ? .server : .client
            case .echoByText: .server
            case .receipt: definition.hasAck ? .server : .client
            case .none: givesID ? .client : .server
            }
        let typingOut: DialectTraits.TypingOut =
            if templates["typing"] != nil || templates["typing.start"] != nil && templates["typing.stop"] != nil {
                .startStop
            } else {
                templates["typing.start"] != nil ? .startOnly : .none
            }
        var opening: DialectTraits.Opening = []
        if templates["auth"] != nil { opening.insert(.authenticates) }
        if definition.onOpen != nil || templates["subscribe"] != nil { opening.insert(.subscribes) }
        let history: DialectTraits.HistorySource =
            if definition.calls?.history != nil { .call } else { templates["fetch"] != nil ? .socket : .none }
        let older: DialectTraits.OlderSource =
            if templates["fetch"]?.names(.before) == true { .socket } else { history == .call ? .call : .none }
        var traits = DialectTraits(
            name: name, identity: definition.identity ?? (namesSender ? .puppet : .single), messageIDOrigin: origin,
            echoesOwnMessages: confirmation == .echoByID || confirmation == .echoByText, confirmation: confirmation,
            typingOut: typingOut,
            readReport: templates["receipt.read"] != nil || templates["receipt"] != nil ? .eachMessage : .none,
            tellsOfLeaves: rules.contains { $0.kind == .leave }, opening: opening,
            waitsForReady: definition.rules.readyMatch != nil || rules.contains { $0.kind == .ready }, history: history,
            older: older,
            maxFrameBytes: maxFrameBytes,
            liveness: definition.ping != nil || templates["ping"] != nil ? .jsonPing : .protocolPing,
            answersPings: definition.ping == nil && templates["ping"] == nil || rules.contains { $0.kind == .pong },
            pingInterval: definition.pingInterval,
            typingRefresh: definition.typingRefresh, repliesByRule: !definition.replies.rules.isEmpty,
            backoff: definition.backoff)
        let rowFields = messages.map(\.fields) + [definition.calls?.history?.element?.fields].compactMap { $0 }
        traits.returnsClientIDs = givesID && rowFields.contains { $0.has(.ref) }
        traits.confirmationIsGuess = definition.echo == .auto
        traits.namesSenders = namesSender
        traits.authorsAloneEdit = definition.edits == .author
        return traits
    }

    public var calls: (any DialectCalls)? { definition.calls }

    // MARK: - Reading

    /// Events that name another room than ours are left out: many backends send every room through one socket.
    public func decode(
        _ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext
    ) -> DecodedFrame {
        explain(frame, context: context).decoded
    }

    /// What a frame decodes to, and why.
    public struct Explanation: Equatable, Sendable {
        public var decoded: DecodedFrame
        /// The place in `decode` of the rule that matched; nil when none did.
        public var rule: Int?
        /// The room of an event that was left out for it.
        public var otherRoom: String?
    }

    public func explain(_ frame: UnsafeRawBufferPointer, context: DialectContext) -> Explanation {
        let (decoded, rule) = definition.rules.decode(frame, context)
        if case .event(let event) = decoded, context.stranger(in: event) == nil {
            return Explanation(decoded: decoded, rule: rule)
        }
        guard let events = decoded.events,
            let stranger = events.lazy.compactMap({ context.stranger(in: $0) }).first
        else { return Explanation(decoded: decoded, rule: rule) }
        return Explanation(
            decoded: .events(events.compactMap { context.ours(of: $0) }), rule: rule, otherRoom: stranger)
    }

    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] {
        let replies = definition.replies
        guard !replies.rules.isEmpty else { return [] }
        return replies.pointers.withSlots { slots in
            var scratch = CustomScratch()
            guard (try? replies.pointers.fill(slots, from: frame, &scratch)) == true else { return [] }
            let scope = CustomTemplateScope(context: context)
            return replies.rules.flatMap { rule in
                rule.match.holds(slots) ? (try? frames(rule.frame, scope)) ?? [] : []
            }
        }
    }

    // MARK: - Writing

    public func encode(_ command: ChatCommand, context: DialectContext) -> EncodedCommand {
        guard let template = template(for: command) else { return .unsupported(.unsupported) }
        var command = command
        if case .message(var message) = command, !message.attachments.isEmpty,
            !definition.messageNames.contains(.attachments)
        {
            message.text = FrameAttachment.textWithLinks(message.text, message.attachments)
            command = .message(message)
        }
        do throws(CustomTemplateFailure) {
            return .frames(try frames(template, CustomTemplateScope(command: command, context: context)))
        } catch {
            return .unsupported(error.reason)
        }
    }

    private func frames(
        _ template: CustomFrameTemplate, _ scope: CustomTemplateScope
    ) throws(CustomTemplateFailure) -> [EncodedFrame] {
        try template.frames(scope, maxBytes: Self.maxFrameBytes, isBinary: definition.frames == .binary)
    }

    /// The template for the kind with its state, else the one for the kind.
    private func template(for command: ChatCommand) -> CustomFrameTemplate? {
        let templates = definition.templates
        switch command {
        case .message: return templates["message"]
        case .edit: return templates["edit"]
        case .delete: return templates["delete"]
        case .typing(let typing):
            return templates[typing.state == .start ? "typing.start" : "typing.stop"] ?? templates["typing"]
        case .receipt(let receipt): return templates["receipt.\(receipt.state.rawValue)"] ?? templates["receipt"]
        case .join: return templates["join"]
        case .leave: return templates["leave"]
        case .presence(let presence): return templates["presence.\(presence.state.rawValue)"] ?? templates["presence"]
        case .reaction(let reaction):
            return templates["reaction.\(reaction.operation.rawValue)"] ?? templates["reaction"]
        case .auth: return templates["auth"]
        case .subscribe: return definition.onOpen ?? templates["subscribe"]
        case .fetch: return templates["fetch"]
        case .ping: return definition.ping ?? templates["ping"]
        case .pong: return templates["pong"]
        }
    }
}

extension DialectContext {
    func isOurs(_ name: String?) -> Bool {
        guard let name, !FrameText.areSameBytes(name, room) else { return true }
        let id = ChatID(name)
        return id == ChatID(room) || announcedRoom.map { id == ChatID($0) } ?? false
    }

    /// The room of the event, or of something in it, when it is not ours.
    fileprivate func stranger(in event: ChatEvent) -> String? {
        if !isOurs(event.roomName) { return event.roomName }
        guard case .history(let history) = event else { return nil }
        return history.messages.first { !isOurs($0.room) }?.room
    }

    /// What is left of the event without other rooms; nil: nothing.
    fileprivate func ours(of event: ChatEvent) -> ChatEvent? {
        guard isOurs(event.roomName) else { return nil }
        guard case .history(var history) = event, !history.messages.isEmpty else { return event }
        history.messages.removeAll { !isOurs($0.room) }
        // Nothing but other rooms' says nothing of ours.
        return history.messages.isEmpty ? nil : .history(history)
    }
}

extension ChatEvent {
    /// The room that the event names. What opens a session may name any.
    fileprivate var roomName: String? {
        switch self {
        case .message(let message): message.room
        case .edit(let edit): edit.room
        case .delete(let delete): delete.room
        case .typing(let typing): typing.room
        case .receipt(let receipt): receipt.room
        case .join(let membership), .leave(let membership): membership.room
        case .presence(let presence): presence.room
        case .reaction(let reaction): reaction.room
        case .system(let notice): notice.room
        case .history(let history): history.room
        case .ready, .auth, .error, .ping, .pong: nil
        }
    }
}

extension CustomFields {
    /// Whether the field can become `word`, as far as the definition tells: by a constant, a map, or from the frame as it
    /// stands there.
    func canSay(_ word: String, _ name: CustomFieldName) -> Bool {
        func can(_ field: CustomField) -> Bool {
            switch field {
            case .pointer: true
            case .first(let fields): fields.contains { can($0) }
            case .constant(let value): value.string == word
            case .looked(_, _, let map, let fallback):
                fallback?.string == word || (map.map { $0.contains { $0.value.string == word } } ?? true)
            case .objects, .values: false
            }
        }
        return self[name].map { can($0) } ?? false
    }
}
