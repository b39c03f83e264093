import ChatModel
import WireBytes

/// The account as which a room's link speaks, as far as it is known.
final class RoomAccount {
    /// The upstream sender where one account speaks for all.
    private(set) var person: ChatPerson
    /// The part from the configuration, the backend or an echo.
    private var known = ChatPerson()
    /// The part inferred from an equal text alone, and the previous value.
    private var guess: (person: ChatPerson, before: ChatPerson)?
    /// The time of the last typing notification for the account.
    private(set) var typingToldAt: MonotonicInstant?

    init(_ person: ChatPerson) { self.person = person }

    var announced: ChatPerson? { known.id == nil && known.name == nil ? nil : known }

    func identified(as person: ChatPerson) {
        guess = nil
        known = ChatPerson(id: person.id ?? known.id, name: person.name ?? known.name)
        self.person = ChatPerson(id: person.id ?? self.person.id, name: person.name ?? self.person.name)
    }

    /// The account's own name, of which nothing else is to be concluded.
    func isCalled(_ name: String) { (known.name, person.name) = (name, name) }

    /// Learned from an echo that was recognised by its text alone.
    func guessed(_ person: ChatPerson) {
        let before = self.person
        identified(as: person)
        guess = (person, before)
    }

    /// Withdraws the guess and returns it; nil: there is none.
    func takeGuess() -> ChatPerson? {
        guard let guess else { return nil }
        self.guess = nil
        person = guess.before
        known = ChatPerson(
            id: guess.person.id == nil ? known.id : nil, name: guess.person.name == nil ? known.name : nil)
        return guess.person
    }

    /// Whether a sender who is not known to be the account may be it all the same.
    func mayBe(_ sender: ChatPerson) -> Bool {
        if sender.id != nil { return known.id == nil }
        return known.name == nil && (sender.name != nil || known.id == nil)
    }

    /// - Parameter at: nil: it no longer types.
    func typingTold(at now: MonotonicInstant?) { typingToldAt = now }
}
