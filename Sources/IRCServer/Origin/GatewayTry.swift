import WireBytes

/// What a gateway said, while its password is being checked.
struct GatewayTry {
    var name: String
    /// The user's.
    var address: NetworkAddress
}
