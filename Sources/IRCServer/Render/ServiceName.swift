/// What the service is called.
enum ServiceName {
    /// No person's nick begins so.
    static let nick = "*bridge"
    static let ident = "bridge"
    static let realname = "the bridge itself; say help to it"
}
