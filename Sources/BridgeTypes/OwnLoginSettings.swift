/// An account's own credentials for the backend of one room.
public struct OwnLoginSettings: Equatable, Sendable {
    /// Name of the `BackendSettings` with the account's tokens and calls; nil: the dialect has no calls.
    public var backend: String?
    /// The account's id at the backend, or its name where the dialect has no ids; nil: determined at run time.
    public var person: String?

    public init(backend: String? = nil, person: String? = nil) {
        self.backend = backend
        self.person = person
    }
}
