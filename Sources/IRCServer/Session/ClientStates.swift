import WireBytes

/// An account that a client is registering.
struct RegistrationTry {
    /// The name of the account, folded.
    var name: String
    /// The label of the requesting line.
    var label: String?
}

/// WEBIRC data of a gateway, while its password is being checked.
struct WebIRCAttempt {
    var name: String
    /// The address of the user.
    var address: NetworkAddress
}

/// The away state of one client of an account.
struct ClientAway {
    /// The text of a client that counts as absent: it does not affect the person's state while other clients do.
    ///
    /// Source: IRCv3 pre-away.
    static let absent = "*"

    var text: String
    /// Later ones are greater.
    var order: UInt64
}
