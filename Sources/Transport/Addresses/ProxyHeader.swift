import WireBytes

// The header in which a load balancer names the client of a connection that it opened. It precedes everything else,
// TLS included, and comes from the balancer alone; the listener names the peers that are trusted to send one.
//
// Source: the PROXY protocol, versions 1 and 2 (haproxy, doc/proxy-protocol.txt).

/// The other end of a connection, by its PROXY header.
public enum ProxyHeader: Equatable, Sendable {
    /// The client's address.
    case client(SocketAddress)
    /// No address to use: a check by the proxy itself, or a family that it does not name. The proxy's own address
    /// counts.
    case unknown
}

/// Why bytes are no PROXY header: a fault of the proxy, or of a listener that expects one from peers that send none.
public enum ProxyHeaderError: Error, Equatable, Sendable {
    /// The first bytes are none of either version's.
    case missing
    /// A line of version 1 that is longer than it can be.
    case lineTooLong(limit: Int)
    /// A line of version 1 with something else than its five words.
    case malformedLine
    /// The version after the signature of version 2.
    case unsupportedVersion(UInt8)
    case unsupportedCommand(UInt8)
    /// An address block shorter than the addresses of its family.
    case addressesCutOff(byteCount: Int)

    /// The fault, for an operator.
    public var sentence: String {
        switch self {
        case .missing: "it begins with no PROXY header"
        case .lineTooLong(let limit): "its PROXY line is longer than \(limit) bytes"
        case .malformedLine: "its PROXY line is malformed"
        case .unsupportedVersion(let version): "its PROXY header is of version \(version)"
        case .unsupportedCommand(let command): "its PROXY header has the unknown command \(command)"
        case .addressesCutOff(let count): "its PROXY header has only \(count) bytes of addresses"
        }
    }
}

/// Reads one PROXY header, of either version, from bytes as they come.
///
/// What follows the addresses of version 2 (the TLVs) is counted and skipped, never held, so at most
/// ``maxHeldBytes`` are. How the bytes are cut makes no difference. After a header or an error the decoder is used up.
public struct ProxyHeaderDecoder: Sendable {
    /// Longest line of version 1, its CRLF included. Source: §2.1, "The worst case".
    public static let maxLineBytes = 107
    /// Signature, version, family and length of version 2. Source: §2.2.
    static let fixedBytes = 16
    /// Two IPv6 addresses with their ports.
    static let longestAddresses = 36
    /// Bytes that a decoder holds at most.
    public static let maxHeldBytes = max(maxLineBytes, fixedBytes + longestAddresses)

    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    static let word = Array("PROXY ".utf8)
    private static let cr: UInt8 = 0x0D
    private static let lf: UInt8 = 0x0A

    public enum Step: Equatable, Sendable {
        /// All bytes fed were taken.
        case needMoreData
        /// `consumed` bytes of those fed last belong to the header; the rest are the client's.
        case header(ProxyHeader, consumed: Int)
    }

    private var held: [UInt8] = []
    /// Bytes behind the addresses that are still to come, once those are there.
    private var toSkip: Int?
    private var result = ProxyHeader.unknown

    public init() {}

    public mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer) throws(ProxyHeaderError) -> Step {
        for (offset, byte) in bytes.enumerated() {
            if let left = toSkip {
                let here = bytes.count - offset
                guard here >= left else {
                    toSkip = left - here
                    return .needMoreData
                }
                return .header(result, consumed: offset + left)
            }
            held.append(byte)
            if try isWhole() {
                if (toSkip ?? 0) == 0 { return .header(result, consumed: offset + 1) }
            }
        }
        return .needMoreData
    }

    /// Whether the bytes held suffice for a result; then ``result`` and ``toSkip`` are set.
    private mutating func isWhole() throws(ProxyHeaderError) -> Bool {
        if held.first == Self.signature.first {
            let known = min(held.count, Self.signature.count)
            guard held.prefix(known).elementsEqual(Self.signature.prefix(known)) else { throw .missing }
            return try isBinaryWhole()
        }
        let known = min(held.count, Self.word.count)
        guard held.prefix(known).elementsEqual(Self.word.prefix(known)) else { throw .missing }
        guard held.last == Self.lf else {
            guard held.count < Self.maxLineBytes else { throw .lineTooLong(limit: Self.maxLineBytes) }
            return false
        }
        result = try Self.parse(line: held[...])
        return true
    }

    // MARK: - Version 1

    /// Source: §2.1. Addresses and ports must be in the form that the specification gives: a header that two readers
    /// could take for two different clients is refused.
    private static func parse(line: ArraySlice<UInt8>) throws(ProxyHeaderError) -> ProxyHeader {
        guard line.suffix(2).elementsEqual([Self.cr, Self.lf]) else { throw .malformedLine }
        let words = line.dropLast(2).split(separator: UInt8(ascii: " "), maxSplits: 6, omittingEmptySubsequences: false)
        guard words.count >= 2 else { throw .malformedLine }
        let family = String(decoding: words[1], as: UTF8.self)
        // The rest of the line after UNKNOWN is to be ignored.
        if family == "UNKNOWN" { return .unknown }
        guard family == "TCP4" || family == "TCP6", words.count == 6 else { throw .malformedLine }
        let octets = family == "TCP4" ? 4 : 16
        guard let client = address(words[2], words[4], octets: octets),
            address(words[3], words[5], octets: octets) != nil
        else { throw .malformedLine }
        return .client(client)
    }

    private static func address(
        _ host: ArraySlice<UInt8>, _ port: ArraySlice<UInt8>, octets: Int
    ) -> SocketAddress? {
        let text = String(decoding: host, as: UTF8.self)
        // An IPv6 address that holds one of IPv4 reads as four octets.
        guard NetworkAddress(text) != nil, text.utf8.contains(UInt8(ascii: ":")) == (octets == 16) else { return nil }
        guard port.count == 1 || port.first != UInt8(ascii: "0"), let number = ASCII.decimal(port, maxDigits: 5) else {
            return nil
        }
        return SocketAddress(host: text, port: number)
    }

    // MARK: - Version 2

    private mutating func isBinaryWhole() throws(ProxyHeaderError) -> Bool {
        if held.count == 13 {
            guard held[12] >> 4 == 2 else { throw .unsupportedVersion(held[12] >> 4) }
            guard held[12] & 0x0F <= 1 else { throw .unsupportedCommand(held[12] & 0x0F) }
        }
        guard held.count >= Self.fixedBytes else { return false }
        let length = Int(held[14]) << 8 | Int(held[15])
        let isLocal = held[12] & 0x0F == 0
        // TCP over IPv4 and over IPv6. Datagrams, socket files and future families have no address that is of use.
        let wanted: Int =
            switch (isLocal, held[13]) {
            case (false, 0x11): 12
            case (false, 0x21): Self.longestAddresses
            default: 0
            }
        guard length >= wanted else { throw .addressesCutOff(byteCount: length) }
        guard held.count == Self.fixedBytes + wanted else { return false }
        toSkip = length - wanted
        func number(_ start: Int, _ count: Int) -> UInt64 {
            held[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch wanted {
        case 12: result = .client(.ipv4(UInt32(truncatingIfNeeded: number(16, 4)), port: UInt16(number(24, 2))))
        case Self.longestAddresses:
            result = .client(SocketAddress(ipv6High: number(16, 8), low: number(24, 8), port: UInt16(number(48, 2))))
        default: result = .unknown
        }
        return true
    }
}

extension SocketAddress {
    /// An IPv6 address; one that holds an address of IPv4 becomes that.
    init(ipv6High high: UInt64, low: UInt64, port: UInt16) {
        if high == 0, low >> 32 == 0xFFFF {
            self = .ipv4(UInt32(truncatingIfNeeded: low), port: port)
        } else {
            self = .ipv6(high: high, low: low, port: port, scope: 0)
        }
    }

    /// Without port and zone; nil for Unix sockets.
    public var networkAddress: NetworkAddress? {
        switch self {
        case .ipv4, .ipv6: NetworkAddress(String(host.prefix { $0 != "%" }))
        case .unix: nil
        }
    }
}

/// Peers that are trusted to name another peer's address.
public struct TrustedPeers: Hashable, Sendable {
    public var ranges: [NetworkRange]
    /// Every peer that may open the socket file.
    public var unix: Bool

    public init(ranges: [NetworkRange] = [], unix: Bool = false) {
        self.ranges = ranges
        self.unix = unix
    }

    public var isEmpty: Bool { ranges.isEmpty && !unix }

    public func contains(_ peer: SocketAddress) -> Bool {
        guard let address = peer.networkAddress else { return unix }
        return contains(address)
    }

    public func contains(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }
}
