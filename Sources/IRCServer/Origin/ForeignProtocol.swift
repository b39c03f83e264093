import IRCProtocol

/// A protocol other than IRC that arrives on IRC ports, recognised by its first bytes.
enum ForeignProtocol: Equatable {
    case http
    case tls
    case smtp
    case proxy

    /// Bytes that suffice to recognise any of them.
    static let longestMark = 16

    var name: String {
        switch self {
        case .http: "HTTP"
        case .tls: "TLS"
        case .smtp: "SMTP"
        case .proxy: "the PROXY protocol (which the listener's proxy_protocol turns on)"
        }
    }

    /// A refusal in that protocol; nil: none is possible.
    var answer: StaticString? {
        switch self {
        case .http:
            """
            HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 59\r\n\
            Connection: close\r\n\r\nThis is an IRC port. Connect with an IRC client or telnet.\n
            """
        // A fatal alert, protocol_version: RFC 8446 §6.
        case .tls: "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}"
        case .smtp: "ERROR :This is an IRC port\r\n"
        case .proxy: nil
        }
    }

    private static let httpMethods = [
        "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "PRI * HTTP/2",
    ]

    /// Methods that are IRC verbs too: the HTTP version at the end of the line distinguishes them.
    private static let sharedMethods: Set<String> = ["CONNECT", "TRACE"]

    /// Verbs that are no person's first word: those of IRC, and of the protocols above.
    static let firstVerbs: Set<String> = {
        let methods = httpMethods.map { String($0.prefix { $0 != " " }) }
        return sharedMethods.union(methods).union(["EHLO", "HELO", "PROXY"])
            .union(IRCCommandTable.standard.rows.map(\.verb))
    }()

    /// From a whole line.
    init?(_ message: IRCMessage) {
        if Self.sharedMethods.contains(message.command), message.params.last?.hasPrefix("HTTP/") == true {
            self = .http
        } else {
            self.init(verb: message.command)
        }
    }

    /// From the verb of a command, in upper case.
    init?(verb: String) {
        if Self.httpMethods.contains(where: { $0.utf8.count == verb.utf8.count + 1 && $0.hasPrefix(verb) }) {
            self = .http
        } else if verb == "EHLO" || verb == "HELO" {
            self = .smtp
        } else if verb == "PROXY" {
            self = .proxy
        } else {
            return nil
        }
    }

    /// Inspects the first bytes of a connection. IRC verbs are never taken for another protocol.
    static func recognise(_ bytes: UnsafeRawBufferPointer) -> ForeignProtocol? {
        if bytes.count >= 2, bytes[0] == 0x16, bytes[1] == 0x03 { return .tls }
        let head = bytes.prefix(longestMark)
        // The signature of version 2 begins with two empty lines and ends in a QUIT.
        if head.starts(with: [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51]) { return .proxy }
        if httpMethods.contains(where: { head.starts(with: $0.utf8) }) { return .http }
        if ["EHLO ", "HELO "].contains(where: { head.starts(with: $0.utf8) }) { return .smtp }
        if head.starts(with: "PROXY ".utf8) { return .proxy }
        return nil
    }
}

extension IRCServer {
    /// Verbs with which a connection begins that is for this server, if only to be turned away.
    package static var firstVerbs: Set<String> { ForeignProtocol.firstVerbs }
}
