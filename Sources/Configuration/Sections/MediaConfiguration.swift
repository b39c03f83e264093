import HTTPProtocol

/// Files that are served under links of the bridge's own.
package struct MediaConfiguration: Equatable, Sendable {
    /// Where people reach the `[[http]]` listener that serves `media`; nil: nothing is served.
    package var publicURL: HTTPURL?
    /// Largest file that people may upload.
    package var maxUploadBytes = 10 * 1024 * 1024
    /// How long a link opens.
    package var linkLifetime: Duration = .seconds(7 * 24 * 60 * 60)
    /// Lifetime of files stored here, from within messages and of backends without uploads. Nil: unlimited.
    package var retention: Duration? = .seconds(30 * 24 * 60 * 60)
    /// All of these files together; the oldest go first.
    package var maxBytes = 1024 * 1024 * 1024

    /// Links are reissued hourly, so shorter ones would expire before use.
    package static let shortestLinkLifetime: Duration = .seconds(60)
    /// An upload is held in memory, several times over on its way.
    package static let uploadLimit = 100 * 1024 * 1024
    package static let maxBytesLimit = 1024 * 1024 * 1024 * 1024

    static let rows: [ConfigurationKey<MediaConfiguration>] = [
        ConfigurationKey(
            "public_url", \.publicURL, .publicURL,
            about: """
                public URL of the [[http]] listener that serves `media`, as `https://chat.example.com`; without it \
                no files are served
                """),
        ConfigurationKey(
            "max_upload", \.maxUploadBytes, .size(1...uploadLimit),
            about: "largest file of an upload"),
        ConfigurationKey(
            "link_lifetime", \.linkLifetime, .duration(atLeast: shortestLinkLifetime),
            about: "minimum validity of a link"),
        ConfigurationKey(
            "retention", \.retention, .durationOrOff,
            about: """
                age at which files within messages, and uploads for backends that take none, are removed from \
                `state_dir`; `off`: never
                """),
        ConfigurationKey(
            "max_bytes", \.maxBytes, .size(1024 * 1024...maxBytesLimit),
            about: "size of all these together; the oldest are removed first"),
    ]
}

// MARK: - Forms

extension ConfigurationForm where Value == HTTPURL? {
    /// An address of the web, or `""`.
    static var publicURL: Self {
        text("an address such as \"https://chat.example.com\"") { text throws(AddressError) in
            if text.isEmpty { return .some(nil) }
            let url: HTTPURL
            do throws(HTTPURLError) {
                url = try HTTPURL(parsing: text)
            } catch {
                throw AddressError(error.sentence)
            }
            guard url.scheme == "http" || url.scheme == "https" else {
                throw AddressError("links begin with https:// or http://")
            }
            guard !url.pathAndQuery.utf8.contains(UInt8(ascii: "?")) else {
                throw AddressError("links have a path of their own behind this, so it has no query")
            }
            // Each link has to fit into a line.
            guard text.utf8.count <= 200 else { throw AddressError("is longer than 200 bytes") }
            return .some(url)
        } print: {
            $0.map { url in
                url.pathAndQuery == "/" ? "\(url.scheme)://\(url.hostHeader)" : url.description
            } ?? ""
        }
    }
}
