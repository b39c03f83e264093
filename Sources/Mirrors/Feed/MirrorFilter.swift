import IRCProtocol

/// What crosses a mirror.
package struct MirrorFilter: Equatable, Sendable {
    package enum Event: String, CaseIterable, Sendable {
        case message, edit, delete, reaction, topic
    }

    package var events: Set<Event> = [.message, .edit, .delete, .reaction]
    /// People and texts that do not cross, neither way.
    package var ignoredNicks: [IRCMask] = []
    package var ignoredTexts: [IRCMask] = []

    package init() {}

    package func passes(nick: String, text: String) -> Bool {
        !ignoredNicks.contains { $0.matches(nick) } && !ignoredTexts.contains { $0.matches(text) }
    }
}
