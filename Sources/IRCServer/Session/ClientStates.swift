import WireBytes

/// The account that a client is about to have.
struct RegistrationTry {
    /// Its name, folded.
    var name: String
    /// Of the line that asked for it.
    var label: String?
}

/// What a gateway said, while its password is being checked.
struct GatewayTry {
    var name: String
    /// The user's.
    var address: NetworkAddress
}

/// That a client of an account is away.
struct ClientAway {
    /// The text of a client that is as good as not there: it says nothing about the person while others do.
    ///
    /// Source: IRCv3 pre-away.
    static let absent = "*"

    var text: String
    /// Later ones are greater.
    var order: UInt64
}
