/// Names of credentials: of parameters in links, of settings, and of members of frames.
public enum SecretNames {
    private static let endings = [
        "password", "passwd", "token", "secret", "credential", "authorization", "api_key", "apikey",
    ]
    /// Endings of other words.
    private static let words: Set = ["auth", "bearer", "jwt", "session", "sid"]
    /// Beginnings of the parameters of links that are signed for one file and for some time, and made to be passed on.
    private static let signatures = ["x_amz_", "x_goog_"]

    /// Whether `name` is that of a secret; without case, `-` and `_`.
    public static func contains(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased().replacing("-", with: "_")
        guard !signatures.contains(where: { name.hasPrefix($0) }) else { return false }
        return words.contains(name) || endings.contains { name.hasSuffix($0) }
    }
}
