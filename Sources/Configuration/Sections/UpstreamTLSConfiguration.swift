import Transport

/// How a room's `wss://` is secured.
package struct UpstreamTLSConfiguration: Equatable, Sendable {
    /// A PEM file; empty: the system's authorities.
    package var authorities = ""
    /// Paths of PEM files; both or none.
    package var clientCertificate = ""
    package var clientKey = ""
    /// Empty: the URL's host.
    package var serverName = ""
    /// SHA-256 digests of public keys, 32 bytes each.
    package var pins: [[UInt8]] = []
    package var minimumVersion = TLSVersion.v12
    /// Nothing is checked.
    package var isInsecure = false

    package init() {}

    static let rows: [ConfigurationKey<Self>] = [
        ConfigurationKey("ca", \.authorities, .string()),
        ConfigurationKey("client_cert", \.clientCertificate, .string()),
        ConfigurationKey("client_key", \.clientKey, .string()),
        ConfigurationKey("server_name", \.serverName, .string(ConfigurationChecks.tlsName)),
        ConfigurationKey("pin_sha256", \.pins, .pins),
        ConfigurationKey("min_version", \.minimumVersion, .choice),
        ConfigurationKey("insecure", \.isInsecure, .boolean),
    ]
}

extension UpstreamTLSConfiguration {
    /// The protocol of the WebSocket handshake. Source: RFC 7301 §6 for the name.
    package static let applicationProtocol = "http/1.1"

    package func settings(_ source: (String) -> TLSSource = TLSSource.file) -> TLSClientSettings {
        var settings = TLSClientSettings()
        if !serverName.isEmpty { settings.serverName = serverName }
        if !authorities.isEmpty { settings.authorities = source(authorities) }
        if !clientCertificate.isEmpty, !clientKey.isEmpty {
            settings.identity = TLSIdentity(certificate: source(clientCertificate), key: source(clientKey))
        }
        settings.pins = Set(pins)
        settings.minimumVersion = minimumVersion
        settings.verifiesPeer = !isInsecure
        settings.protocols = [Self.applicationProtocol]
        return settings
    }
}
