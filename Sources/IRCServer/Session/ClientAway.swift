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
