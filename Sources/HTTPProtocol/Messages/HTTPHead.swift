import WireBytes

/// `HTTP/major.minor`.
public struct HTTPVersion: Equatable, Comparable, Sendable {
    public var major: UInt8
    public var minor: UInt8

    public init(major: UInt8, minor: UInt8) {
        self.major = major
        self.minor = minor
    }

    public static let http11 = HTTPVersion(major: 1, minor: 1)

    public static func < (a: Self, b: Self) -> Bool { (a.major, a.minor) < (b.major, b.minor) }
}

/// The head of a request.
public struct HTTPRequestHead: Equatable, Sendable {
    /// A token such as `GET`; case matters.
    public var method: String
    /// The request target as on the wire: visible ASCII, not empty.
    public var target: String
    public var version: HTTPVersion
    public var headers: HTTPHeaders

    public init(method: String, target: String, version: HTTPVersion = .http11, headers: HTTPHeaders) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
    }

    /// Writes the head with its empty line.
    ///
    /// - Throws: ``HTTPProtocolError/invalidOutgoingField(_:)``, before anything is written.
    public func serialize(into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard ASCII.isToken(method) else { throw .invalidOutgoingField("the method") }
        guard !target.isEmpty, target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .invalidOutgoingField("the request target")
        }
        try headers.check()
        out.append(method)
        out.append(" ")
        out.append(target)
        out.append(" ")
        version.serialize(into: &out)
        out.append("\r\n")
        headers.serialize(into: &out)
    }
}

/// The head of a response.
public struct HTTPResponseHead: Equatable, Sendable {
    public var version: HTTPVersion
    /// 100...999.
    public var status: Int
    /// May be empty.
    public var reason: String
    public var headers: HTTPHeaders

    public init(version: HTTPVersion = .http11, status: Int, reason: String, headers: HTTPHeaders) {
        self.version = version
        self.status = status
        self.reason = reason
        self.headers = headers
    }

    /// Writes the head with its empty line.
    ///
    /// - Throws: ``HTTPProtocolError/invalidOutgoingField(_:)``, before anything is written.
    public func serialize(into out: inout ByteWriter) throws(HTTPProtocolError) {
        guard (100...999).contains(status) else { throw .invalidOutgoingField("the status") }
        guard HTTPHeaders.isValidValue(reason) else { throw .invalidOutgoingField("the reason") }
        try headers.check()
        version.serialize(into: &out)
        out.append(" ")
        out.append(decimal: Int64(status))
        out.append(" ")
        out.append(reason)
        out.append("\r\n")
        headers.serialize(into: &out)
    }
}

extension HTTPVersion {
    fileprivate func serialize(into out: inout ByteWriter) {
        out.append("HTTP/")
        out.append(decimal: Int64(major))
        out.append(".")
        out.append(decimal: Int64(minor))
    }
}

extension HTTPHeaders {
    /// Refuses names that are not tokens and values that would end their line.
    func check() throws(HTTPProtocolError) {
        for field in fields {
            guard ASCII.isToken(field.name) else { throw .invalidOutgoingField("a header name") }
            guard Self.isValidValue(field.value) else { throw .invalidOutgoingField(field.name) }
        }
    }

    func serialize(into out: inout ByteWriter) {
        for field in fields {
            out.append(field.name)
            out.append(": ")
            out.append(field.value)
            out.append("\r\n")
        }
        out.append("\r\n")
    }
}
