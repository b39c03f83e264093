import WireBytes

/// The names of accounts and of their clients.
package enum AccountName {
    /// The form in which account names are compared: ASCII case folded.
    package static func fold(_ name: String) -> String { ASCII.lowercased(name) }
}

/// The name of one client of an account: `phone` in `alice@phone`.
package enum ClientName {
    /// Limit in bytes, the same as for the name in USER.
    package static let maxBytes = 32

    /// `text` as a client name: without blanks and controls, in lower case, cut at ``maxBytes``; nil: empty.
    package static func clean(_ text: String) -> String? {
        let printable = text.unicodeScalars.prefix(maxBytes * 4).lazy.filter {
            !PrintableText.isControl($0) && !$0.properties.isWhitespace
        }
        let name = PrintableText.prefix(of: String(String.UnicodeScalarView(printable)), maxBytes: maxBytes)
        return name.isEmpty ? nil : ASCII.lowercased(name)
    }

    /// Both sides of `alice@phone`; account names contain no `@`.
    package static func split(_ login: String) -> (account: String, client: String?) {
        guard let at = login.firstIndex(of: "@") else { return (login, nil) }
        return (String(login[..<at]), clean(String(login[login.index(after: at)...])))
    }
}
