import WireBytes

// Derived URLs: the same with more in the query, and the target of a reference in an answer.

extension HTTPURL {
    /// The same URL with more at the end of its path and of its query, both percent-encoded already.
    public func appending(path: String, query: String) -> HTTPURL {
        let parts = pathAndQuery.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var whole = String(parts.first ?? "")
        if !path.isEmpty, whole.utf8.last == UInt8(ascii: "/") { whole.removeLast() }
        whole += path
        let queries = [parts.count > 1 ? String(parts[1]) : "", query].filter { !$0.isEmpty }
        return withResource(queries.isEmpty ? whole : whole + "?" + queries.joined(separator: "&"))
    }

    /// The same URL with `items` added to the query, percent-encoded; names that are in it already are left as they are.
    public func addingToQuery(_ items: [(name: String, value: String)]) -> HTTPURL {
        var resource = pathAndQuery
        for (name, value) in items {
            let encodedName = Self.percentEncoded(name)
            guard !Self.hasQueryItem(named: encodedName, in: resource) else { continue }
            if let mark = resource.utf8.firstIndex(of: UInt8(ascii: "?")) {
                let isOpen =
                    resource.utf8.index(after: mark) == resource.utf8.endIndex
                    || resource.utf8.last == UInt8(ascii: "&")
                resource += isOpen ? "" : "&"
            } else {
                resource += "?"
            }
            resource += encodedName + "=" + Self.percentEncoded(value)
        }
        return withResource(resource)
    }

    private static func hasQueryItem(named name: String, in resource: String) -> Bool {
        let bytes = Array(resource.utf8)
        guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else { return false }
        return bytes[(mark + 1)...].split(separator: UInt8(ascii: "&")).contains { item in
            item.prefix { $0 != UInt8(ascii: "=") }.elementsEqual(name.utf8)
        }
    }

    /// `text` with each `%XX` as the byte that it stands for; nil where that is malformed or no UTF-8.
    ///
    /// Source: RFC 3986 §2.1.
    public static func percentDecoded(_ text: String) -> String? {
        percentDecoded(Array(text.utf8)[...]).flatMap { String(validating: $0, as: UTF8.self) }
    }

    static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var out: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                out.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy(ASCII.isHexDigit),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            out.append(value)
            rest = rest.dropFirst(2)
        }
        return out
    }

    /// `text` with everything but letters, digits and `-._~` as `%XX`.
    ///
    /// Source: RFC 3986 §2.1, §2.3.
    public static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~".utf8.contains(byte) {
                out.append(byte)
            } else {
                out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Whether the path of `target`, which may have a query, has a segment `.` or `..`, and so may lead elsewhere.
    /// Slashes and dots count however they are encoded, since some servers decode before they check.
    public static func climbs(_ target: String) -> Bool {
        var path = ASCII.lowercased(String(target.prefix { $0 != "?" && $0 != "#" }))
        // Encoded twice, or more often: each round makes it shorter.
        while path.contains("%25") { path = path.replacing("%25", with: "%") }
        for (code, plain) in [("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")] {
            path = path.replacing(code, with: plain)
        }
        return path.split(separator: "/").contains { $0 == "." || $0 == ".." }
    }

    /// The target of a `Location` in an answer from this URL. `http` and `https` become `ws` and `wss` where this URL
    /// is one of those; a fragment is dropped.
    ///
    /// Source: RFC 9110 §10.2.2; RFC 3986 §5.2.
    public func resolving(location: String) throws(HTTPURLError) -> HTTPURL {
        let reference = Array(location.utf8.prefix { $0 != UInt8(ascii: "#") })
        let text = String(decoding: reference, as: UTF8.self)
        if let scheme = Self.scheme(of: reference) {
            var absolute = text
            if !["http", "https"].contains(self.scheme), scheme == "http" || scheme == "https" {
                let isSecure = scheme == "https"
                absolute = (isSecure ? "wss" : "ws") + String(decoding: reference[scheme.utf8.count...], as: UTF8.self)
            }
            return try HTTPURL(parsing: absolute)
        }
        if reference.starts(with: "//".utf8) {
            guard !isUnixSocket else { throw .invalidHost(text) }
            return try HTTPURL(parsing: scheme + ":" + text)
        }
        let path = String(decoding: pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        let resource: String
        switch reference.first {
        case nil: resource = pathAndQuery
        case UInt8(ascii: "/"): resource = Self.withoutDotSegments(text)
        case UInt8(ascii: "?"): resource = path + text
        default:
            let folder = path.utf8.prefix(
                path.utf8.lastIndex(of: UInt8(ascii: "/")).map {
                    path.utf8.distance(from: path.utf8.startIndex, to: $0) + 1
                } ?? 0)
            resource = Self.withoutDotSegments(String(decoding: folder, as: UTF8.self) + text)
        }
        guard resource.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .invalidCharacter }
        return withResource(resource)
    }

    /// The scheme with which an absolute reference begins, in lower case.
    private static func scheme(of reference: [UInt8]) -> String? {
        guard let end = reference.firstIndex(where: { ":/?".utf8.contains($0) }), reference[end] == UInt8(ascii: ":"),
            end > 0, ASCII.isLetter(reference[0]),
            reference[..<end].allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0) })
        else { return nil }
        return ASCII.lowercased(String(decoding: reference[..<end], as: UTF8.self))
    }

    /// Source: RFC 3986 §5.2.4, for paths that begin with a slash.
    private static func withoutDotSegments(_ resource: String) -> String {
        let bytes = Array(resource.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        var kept: [ArraySlice<UInt8>] = []
        let segments = bytes[..<end].dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual("..".utf8) {
                _ = kept.popLast()
                if isLast { kept.append([]) }
            } else if segment.elementsEqual(".".utf8) {
                if isLast { kept.append([]) }
            } else {
                kept.append(segment)
            }
        }
        let path = kept.reduce(into: [UInt8]()) { $0 += [UInt8(ascii: "/")] + $1 }
        return String(decoding: (path.isEmpty ? [UInt8(ascii: "/")] : path) + bytes[end...], as: UTF8.self)
    }
}
