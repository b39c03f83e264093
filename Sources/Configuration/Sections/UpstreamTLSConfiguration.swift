import Transport

/// How a room's `wss://`, or a mirror's `ircs://`, is secured.
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
        ConfigurationKey(
            "ca", \.authorities, .string(),
            about: "a PEM file of certificate authorities",
            usual: "the system's"),
        ConfigurationKey(
            "client_cert", \.clientCertificate, .string(),
            about: "a PEM file, presented on request"),
        ConfigurationKey(
            "client_key", \.clientKey, .string(),
            about: "a PEM file with its private key, without a passphrase"),
        ConfigurationKey(
            "server_name", \.serverName, .string(ConfigurationChecks.tlsName),
            about: "SNI and checked name",
            usual: "the URL's host"),
        ConfigurationKey(
            "pin_sha256", \.pins, .pins,
            about: """
                accepted keys of the server (base64, as `chatbridge cert fingerprint` prints), instead of a \
                signature by an authority; name and dates are still checked
                """),
        ConfigurationKey(
            "min_version", \.minimumVersion, .choice,
            about: "oldest accepted version: `1.2` or `1.3`"),
        ConfigurationKey(
            "insecure", \.isInsecure, .boolean,
            about: "`true`: disables all checks, vulnerable to interception; logs a warning"),
    ]
}

extension UpstreamTLSConfiguration {
    /// The protocol of the WebSocket handshake. Source: RFC 7301 §6 for the name.
    package static let applicationProtocol = "http/1.1"

    /// - Parameter protocols: offered by ALPN.
    package func settings(
        _ source: (String) -> TLSSource = TLSSource.file, protocols: [String] = [applicationProtocol]
    ) -> TLSClientSettings {
        var settings = TLSClientSettings()
        if !serverName.isEmpty { settings.serverName = serverName }
        if !authorities.isEmpty { settings.authorities = source(authorities) }
        if !clientCertificate.isEmpty, !clientKey.isEmpty {
            settings.identity = TLSIdentity(certificate: source(clientCertificate), key: source(clientKey))
        }
        settings.pins = Set(pins)
        settings.minimumVersion = minimumVersion
        settings.verifiesPeer = !isInsecure
        settings.protocols = protocols
        return settings
    }
}
