/// A numeric IPv4 or IPv6 address, for comparing; sockets have a type of their own.
public struct NetworkAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 or 16 octets, the first one first. An IPv4 address mapped into IPv6 has 4.
    public let bytes: [UInt8]

    /// Reads `192.0.2.1` and `2001:db8::1`, without brackets and zone; nil for anything else.
    ///
    /// Source: RFC 3986 §3.2.2; RFC 4291 §2.2.
    public init?(_ text: String) {
        let characters = Array(text.utf8)[...]
        if let four = Self.ipv4(characters) {
            bytes = four
        } else if let sixteen = Self.ipv6(characters) {
            let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
            bytes = sixteen.starts(with: mapped) ? Array(sixteen[12...]) : sixteen
        } else {
            return nil
        }
    }

    /// 127.0.0.0/8 and `::1`.
    public var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// Whether the first `prefixBits` bits are those of `network`, which is of the same family.
    public func isIn(_ network: NetworkAddress, prefixBits: Int) -> Bool {
        guard bytes.count == network.bytes.count else { return false }
        var left = prefixBits
        for (a, b) in zip(bytes, network.bytes) {
            guard left > 0 else { return true }
            let mask: UInt8 = left >= 8 ? 0xFF : ~(0xFF >> UInt8(left))
            guard a & mask == b & mask else { return false }
            left -= 8
        }
        return true
    }

    /// The canonical text.
    ///
    /// Source: RFC 5952 §4.
    public var description: String {
        if bytes.count == 4 { return bytes.map { String($0) }.joined(separator: ".") }
        let groups = stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        // The first of the longest runs of zeros; a single one stays.
        var gap = 0..<0
        var start = 0
        for index in groups.indices {
            if groups[index] != 0 { start = index + 1 }
            if index + 1 - start > max(gap.count, 1) { gap = start..<index + 1 }
        }
        func text(_ part: ArraySlice<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        return gap.isEmpty
            ? text(groups[...]) : text(groups[..<gap.lowerBound]) + "::" + text(groups[gap.upperBound...])
    }

    private static func ipv4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var octets: [UInt8] = []
        for part in parts {
            // A leading zero means octal to some readers, so it is refused here.
            guard part.count == 1 || part.first != UInt8(ascii: "0"), let number = ASCII.decimal(part, maxDigits: 3),
                let octet = UInt8(exactly: number)
            else { return nil }
            octets.append(octet)
        }
        return octets
    }

    private static func ipv6(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        // The longest form has 45 characters; more cannot be one and need not be split.
        guard text.count <= 45 else { return nil }
        let colon = UInt8(ascii: ":")
        var gap: Int?
        for index in text.indices.dropLast() where text[index] == colon && text[index + 1] == colon {
            // A second gap, or three colons in a row.
            guard gap == nil else { return nil }
            gap = index
        }
        guard let gap else {
            guard let all = groups(text), all.count == 16 else { return nil }
            return all
        }
        guard let head = groups(text[..<gap]), let tail = groups(text[(gap + 2)...]), head.count + tail.count <= 14
        else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    /// The octets of groups of hexadecimal digits; the last group may be an IPv4 address.
    private static func groups(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var octets: [UInt8] = []
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, let four = ipv4(part) {
                octets += four
                continue
            }
            guard (1...4).contains(part.count), part.allSatisfy(ASCII.isHexDigit),
                let value = UInt16(String(decoding: part, as: UTF8.self), radix: 16)
            else { return nil }
            octets += [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
        }
        return octets
    }
}

/// Addresses that begin with the same bits: `10.0.0.0/8`, `2001:db8::/32`, or one address.
public struct NetworkRange: Hashable, Sendable, CustomStringConvertible {
    public let address: NetworkAddress
    /// 0 to 32, or to 128 for IPv6.
    public let prefixBits: Int
    /// As it was written.
    public let description: String

    /// Reads an address, or an address, a slash and a number of bits; nil for anything else, and for an address with
    /// bits beyond those, which is a mistyped one.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = NetworkAddress(String(first)) else { return nil }
        let allBits = address.bytes.count * 8
        var bits = allBits
        if parts.count == 2 {
            guard parts[1].utf8.count <= 3, let number = ASCII.decimal(parts[1].utf8), let small = Int(exactly: number),
                small <= allBits
            else { return nil }
            bits = small
        }
        guard Self.hasOnly(address, bits: bits) else { return nil }
        self.address = address
        prefixBits = bits
        description = text
    }

    public func contains(_ other: NetworkAddress) -> Bool { other.isIn(address, prefixBits: prefixBits) }

    /// Whether all bits behind the first `bits` are zero.
    private static func hasOnly(_ address: NetworkAddress, bits: Int) -> Bool {
        for (index, byte) in address.bytes.enumerated() {
            let kept = bits - index * 8
            if kept >= 8 { continue }
            let mask: UInt8 = kept <= 0 ? 0xFF : 0xFF >> UInt8(kept)
            if byte & mask != 0 { return false }
        }
        return true
    }
}
