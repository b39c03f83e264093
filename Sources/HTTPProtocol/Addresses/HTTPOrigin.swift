/// Who a connection is to.
public struct HTTPOrigin: Hashable, Sendable {
    public var scheme: String
    public var host: String
    public var port: UInt16

    public init(_ url: HTTPURL) {
        scheme = url.scheme
        host = url.host
        port = url.port
    }
}
