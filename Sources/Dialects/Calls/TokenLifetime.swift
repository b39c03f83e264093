import JSONText
import WireBytes

extension BackendTokens {
    /// Longest token that is looked into, in bytes; an HTTP head could hold no longer one.
    static let maxInspectedBytes = 16 * 1024

    /// The remaining lifetime of the access token, in milliseconds: from the answer, else from the token where it is a
    /// JWT; nil when neither has one. May be zero or less when the clocks disagree.
    ///
    /// The signature is not verified. The lifetime counts from `iat` where the token has one, so that a wrong local
    /// clock does no harm.
    ///
    /// - Parameter wallMilliseconds: now, since 1970.
    ///
    /// Source: RFC 7519 §4.1.4, §4.1.6.
    public func lifetime(wallMilliseconds: Int64) -> Int64? {
        if let lifetimeMilliseconds { return lifetimeMilliseconds }
        guard let claims = Self.claims(of: access), let end = Self.milliseconds(claims["exp"]) else { return nil }
        let start = Self.milliseconds(claims["iat"]) ?? wallMilliseconds
        let (left, overflow) = end.subtractingReportingOverflow(start)
        return overflow ? nil : left
    }

    /// The payload of a JWT in its compact form. Source: RFC 7515 §7.1.
    private static func claims(of token: String) -> JSONValue? {
        guard token.utf8.count <= maxInspectedBytes else { return nil }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        // Some issuers add the padding that the standard drops.
        let digits = String(decoding: parts[1].utf8.filter { $0 != UInt8(ascii: "=") }, as: UTF8.self)
        guard let payload = Base64.decodeURLSafe(digits) else { return nil }
        return try? JSONValue(parsing: payload)
    }

    /// A NumericDate in milliseconds; nil for other values, and beyond the year 9999.
    private static func milliseconds(_ value: JSONValue?) -> Int64? {
        guard let seconds = value?.double, seconds >= 0, seconds < 253_402_300_800 else { return nil }
        return Int64(seconds * 1000)
    }
}
