public import ChatModel
public import Dialects
import JSONText

/// Any JSON backend, described instead of programmed: pointers into its frames, and templates for the relay's own.
///
/// All reading of the description happens when it is loaded; a frame is walked once along the pointers that its rules use.
///
/// Source: docs/backends/custom.md.
public struct CustomDialect: Dialect {
    public let definition: CustomDefinition
    public let traits: DialectTraits

    /// - Parameters:
    ///   - name: the name in the configuration.
    ///   - base: the backend's HTTP base without a slash at its end, which completes addresses of files; nil: unknown.
    public init(_ definition: CustomDefinition, name: String = "custom", base: String? = nil) {
        self.definition = definition.completing(addressesBy: base)
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
        var traits = DialectTraits(
            name: name, identity: definition.identity ?? (namesSender ? .puppet : .single), messageIDOrigin: origin,
            echoesOwnMessages: confirmation == .echoByID || confirmation == .echoByText, confirmation: confirmation,
            typingOut: typingOut, backoff: definition.backoff)
        traits.readReport =
            switch templates["receipt.read"] ?? templates["receipt"] {
            case nil: .none
            case .newest: .upTo
            default: .eachMessage
            }
        traits.tellsOfLeaves = rules.contains { $0.kind == .leave }
        if templates["auth"] != nil { traits.opening.insert(.authenticates) }
        if definition.onOpen != nil || templates["subscribe"] != nil { traits.opening.insert(.subscribes) }
        traits.waitsForReady = definition.rules.readyMatch != nil || rules.contains { $0.kind == .ready }
        traits.history =
            if definition.calls?.history != nil { .call } else { templates["fetch"] != nil ? .socket : .none }
        traits.older =
            if templates["fetch"]?.names(.before) == true { .socket } else { traits.history == .call ? .call : .none }
        let hasPing = definition.ping != nil || templates["ping"] != nil
        traits.liveness = hasPing ? .jsonPing : .protocolPing
        traits.answersPings = !hasPing || rules.contains { $0.kind == .pong }
        traits.pingInterval = definition.pingInterval
        traits.typingRefresh = definition.typingRefresh
        traits.repliesByRule = !definition.replies.rules.isEmpty
        let rowFields = messages.map(\.fields) + [definition.calls?.history?.element?.fields].compactMap { $0 }
        traits.returnsClientIDs = givesID && rowFields.contains { $0.has(.ref) }
        traits.confirmationIsGuess = definition.echo == .auto
        traits.namesSenders = namesSender
        traits.idsAreNumbers = definition.ids == .number
        traits.guardsFiles = definition.files == .token
        traits.authorsAloneEdit = definition.edits == .author
        return traits
    }

    public var calls: (any DialectCalls)? { definition.calls }

    // MARK: - Reading

    /// Events of other rooms are left out: many backends send every room through one socket.
    public func decode(_ frame: UnsafeRawBufferPointer, isBinary: Bool, context: DialectContext) -> DecodedFrame {
        explain(frame, context: context).decoded
    }

    /// The decoded frame, and the rule behind it.
    public struct Explanation: Equatable, Sendable {
        public var decoded: DecodedFrame
        /// The place in `decode` of the rule that matched; nil when none did.
        public var rule: Int?
        /// What of that rule a dropped frame did not fit: a field, or `each`.
        public var field: String?
        /// The room of an event that was left out for it.
        public var otherRoom: String?
    }

    public func explain(_ frame: UnsafeRawBufferPointer, context: DialectContext) -> Explanation {
        if definition.frames == .prefixed { return CustomPrefix.withJSON(of: frame) { explainJSON($0, context) } }
        return explainJSON(frame, context)
    }

    private func explainJSON(_ frame: UnsafeRawBufferPointer, _ context: DialectContext) -> Explanation {
        let (decoded, rule, field) = definition.rules.decode(frame, context)
        if case .event(let event) = decoded, context.otherRoom(in: event) == nil {
            return Explanation(decoded: decoded, rule: rule, field: field)
        }
        guard let events = decoded.events,
            let otherRoom = events.lazy.compactMap({ context.otherRoom(in: $0) }).first
        else { return Explanation(decoded: decoded, rule: rule, field: field) }
        return Explanation(
            decoded: .events(events.compactMap { context.withoutOtherRooms($0) }), rule: rule, otherRoom: otherRoom)
    }

    public func dropPlace(of frame: UnsafeRawBufferPointer, context: DialectContext) -> DropPlace? {
        let explanation = explain(frame, context: context)
        return explanation.rule.map { DropPlace(rule: $0, field: explanation.field) }
    }

    public var readyCondition: String? {
        if definition.rules.readyMatch != nil { return "ready_when" }
        return definition.rules.rules.firstIndex { $0.kind == .ready }.map { "rule \($0)" }
    }

    public func readyValues(in frame: UnsafeRawBufferPointer) -> String {
        if definition.frames == .prefixed {
            return CustomPrefix.withJSON(of: frame) { definition.rules.readyValues(in: $0) }
        }
        return definition.rules.readyValues(in: frame)
    }

    public func automaticReplies(to frame: UnsafeRawBufferPointer, context: DialectContext) -> [EncodedFrame] {
        let replies = definition.replies
        guard !replies.rules.isEmpty else { return [] }
        if definition.frames == .prefixed { return CustomPrefix.withJSON(of: frame) { reply(to: $0, context) } }
        return reply(to: frame, context)
    }

    private func reply(to frame: UnsafeRawBufferPointer, _ context: DialectContext) -> [EncodedFrame] {
        let replies = definition.replies
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
        try template.frames(scope, maxBytes: DialectTraits.usualMaxFrameBytes, isBinary: definition.frames == .binary)
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
    func isOwnRoom(_ name: String?) -> Bool {
        guard let name, !TextBytes.areSame(name, room) else { return true }
        let id = ChatID(name)
        return id == ChatID(room) || announcedRoom.map { id == ChatID($0) } ?? false
    }

    /// The room of the event, or within it, when it is another one.
    fileprivate func otherRoom(in event: ChatEvent) -> String? {
        if !isOwnRoom(event.roomName) { return event.roomName }
        guard case .history(let history) = event else { return nil }
        return history.messages.first { !isOwnRoom($0.room) }?.room
    }

    /// The event without other rooms; nil: nothing is left.
    fileprivate func withoutOtherRooms(_ event: ChatEvent) -> ChatEvent? {
        guard isOwnRoom(event.roomName) else { return nil }
        guard case .history(var history) = event, !history.messages.isEmpty else { return event }
        history.messages.removeAll { !isOwnRoom($0.room) }
        // A history of other rooms alone is no event here.
        return history.messages.isEmpty ? nil : .history(history)
    }
}

extension ChatEvent {
    /// The room of the event, or of its history.
    fileprivate var roomName: String? { if case .history(let history) = self { history.room } else { room } }
}

extension CustomFields {
    /// Whether the field can become `word`, by a constant, a map, or unchanged from the frame.
    func canSay(_ word: String, _ name: CustomFieldName) -> Bool {
        func can(_ field: CustomField) -> Bool {
            switch field {
            case .pointer: true
            case .first(let fields): fields.contains { can($0) }
            case .constant(let value): value.string == word
            case .looked(_, _, let how):
                how.fallback?.string == word || (how.map.map { $0.contains { $0.value.string == word } } ?? true)
            case .objects, .values: false
            }
        }
        return self[name].map { can($0) } ?? false
    }
}
