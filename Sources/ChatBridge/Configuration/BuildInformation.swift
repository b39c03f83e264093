/// What this program calls itself.
enum BuildInformation {
    static let name = "chatbridge"
    static let version = "0.1.0"
}
