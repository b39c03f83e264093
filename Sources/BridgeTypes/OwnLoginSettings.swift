/// What an account shows of its own to the backend of one room.
public struct OwnLoginSettings: Equatable, Sendable {
    /// The ``BackendSettings`` with the account's own tokens and calls; nil: the wire has no calls.
    public var backend: String?
    /// The id by which the backend knows the account, or its name where the wire has no ids; nil: it is asked or learned.
    public var person: String?

    public init(backend: String? = nil, person: String? = nil) {
        self.backend = backend
        self.person = person
    }
}
