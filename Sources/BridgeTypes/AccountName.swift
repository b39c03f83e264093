import WireBytes

/// The names of accounts and of their clients.
package enum AccountName {
    /// The form in which names of accounts are compared: without regard to ASCII case.
    package static func fold(_ name: String) -> String { ASCII.lowercased(name) }
}

/// The name by which an account tells its clients apart: `phone` in `alice@phone`.
package enum ClientName {
    /// Bytes; as many as the name in USER may have.
    package static let maxBytes = 32

    /// `text` fit for a name: without blanks and controls, in lower case, cut at ``maxBytes``. Nil: nothing is left.
    package static func clean(_ text: String) -> String? {
        let printable = text.unicodeScalars.prefix(maxBytes * 4).filter {
            !PrintableText.isControl($0) && !$0.properties.isWhitespace
        }
        let name = PrintableText.prefix(of: String(String.UnicodeScalarView(printable)), maxBytes: maxBytes)
        return name.isEmpty ? nil : ASCII.lowercased(name)
    }

    /// The two sides of `alice@phone`. No account's name has an `@`.
    package static func split(_ login: String) -> (account: String, client: String?) {
        guard let at = login.firstIndex(of: "@") else { return (login, nil) }
        return (String(login[..<at]), clean(String(login[login.index(after: at)...])))
    }
}
