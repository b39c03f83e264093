/// The parameters of permessage-deflate: one side's offer, or both sides' agreement.
///
/// In an offer, every member is the upper bound, and the handshake may bring less. A ``WebSocketConnection`` obeys the
/// agreement. A "context" is a compressor's window over earlier messages.
///
/// The cost of a window: a side that compresses holds 256 KiB with 15 bits, half of it with each bit less; a side that
/// decompresses holds about 40 KiB. Without a context, both are held only while a message is made or read.
///
/// Source: RFC 7692 §7.1.
public struct WebSocketCompression: Equatable, Sendable {
    /// Logarithm of the window's bytes.
    public static let windowBits = 8...15
    /// Messages of fewer bytes are sent as they are, unless asked otherwise: the few bytes saved are less than a packet's
    /// overhead, and the compressor's tables have to be cleared.
    public static let defaultLeastCompressedBytes = 256

    static let name = "permessage-deflate"

    /// The server compresses each message on its own.
    public var serverNoContextTakeover: Bool
    /// The client compresses each message on its own.
    public var clientNoContextTakeover: Bool
    /// Window of the server's compressor; within ``windowBits``.
    public var serverMaxWindowBits: Int
    /// Window of the client's compressor; within ``windowBits``.
    public var clientMaxWindowBits: Int
    /// Messages of fewer bytes are sent as they are, and so are empty ones. Not negotiated.
    public var leastCompressedBytes: Int

    /// - Parameters:
    ///   - serverMaxWindowBits: brought within ``windowBits``, as is `clientMaxWindowBits`.
    public init(
        serverNoContextTakeover: Bool = false, clientNoContextTakeover: Bool = false, serverMaxWindowBits: Int = 15,
        clientMaxWindowBits: Int = 15, leastCompressedBytes: Int = WebSocketCompression.defaultLeastCompressedBytes
    ) {
        func inRange(_ bits: Int) -> Int {
            min(max(bits, Self.windowBits.lowerBound), Self.windowBits.upperBound)
        }
        self.serverNoContextTakeover = serverNoContextTakeover
        self.clientNoContextTakeover = clientNoContextTakeover
        self.serverMaxWindowBits = inRange(serverMaxWindowBits)
        self.clientMaxWindowBits = inRange(clientMaxWindowBits)
        self.leastCompressedBytes = leastCompressedBytes
    }

    /// The parameters of the compressor of `role`.
    func sending(_ role: WebSocketRole) -> (windowBits: Int, keepsContext: Bool) {
        switch role {
        case .client: (clientMaxWindowBits, !clientNoContextTakeover)
        case .server: (serverMaxWindowBits, !serverNoContextTakeover)
        }
    }

    // MARK: - Client

    /// The offer for `Sec-WebSocket-Extensions`. It always lets the server choose the client's window.
    var offer: String {
        var text = Self.name
        if serverNoContextTakeover { text += "; server_no_context_takeover" }
        if clientNoContextTakeover { text += "; client_no_context_takeover" }
        if serverMaxWindowBits < 15 { text += "; server_max_window_bits=\(serverMaxWindowBits)" }
        text += "; client_max_window_bits"
        if clientMaxWindowBits < 15 { text += "=\(clientMaxWindowBits)" }
        return text
    }

    /// The agreement by a server's answer to ``offer``.
    ///
    /// - Throws: the fault of the answer; the client closes the connection.
    ///
    /// Source: RFC 7692 §5.1, §7.1.
    func agreement(withAnswer answer: WebSocketExtension) throws(WebSocketRefusal) -> WebSocketCompression {
        let parameters = try Parameters(answer)
        var result = self
        guard parameters.serverNoContextTakeover || !serverNoContextTakeover else {
            throw .compressionNotAsOffered("server_no_context_takeover was asked for and is missing")
        }
        result.serverNoContextTakeover = parameters.serverNoContextTakeover
        // The client's own decision: it may drop its context even where the server does not ask it to.
        result.clientNoContextTakeover = clientNoContextTakeover || parameters.clientNoContextTakeover
        switch parameters.serverMaxWindowBits {
        case .absent:
            guard serverMaxWindowBits == 15 else {
                throw .compressionNotAsOffered("server_max_window_bits was asked for and is missing")
            }
        case .withoutValue: throw .compressionNotAsOffered("server_max_window_bits has no value")
        case .bits(let bits):
            guard bits <= serverMaxWindowBits else {
                throw .compressionNotAsOffered("server_max_window_bits is larger than what was asked for")
            }
            result.serverMaxWindowBits = bits
        }
        switch parameters.clientMaxWindowBits {
        case .absent: break
        case .withoutValue: throw .compressionNotAsOffered("client_max_window_bits has no value")
        case .bits(let bits):
            guard bits <= clientMaxWindowBits else {
                throw .compressionNotAsOffered("client_max_window_bits is larger than what was offered")
            }
            result.clientMaxWindowBits = bits
        }
        return result
    }

    // MARK: - Server

    /// The answer to the first of a client's offers that can be met, and the agreement by it; nil when none can.
    ///
    /// An offer with an unknown, repeated or wrong parameter is passed over.
    ///
    /// Source: RFC 7692 §5.1, §7.1.
    func answer(to offers: [WebSocketExtension]) -> (text: String, agreement: WebSocketCompression)? {
        for offer in offers where offer.name == Self.name {
            if let parameters = try? Parameters(offer), let answer = answer(to: parameters) { return answer }
        }
        return nil
    }

    private func answer(to offer: Parameters) -> (text: String, agreement: WebSocketCompression)? {
        var result = self
        var text = Self.name
        result.serverNoContextTakeover = serverNoContextTakeover || offer.serverNoContextTakeover
        if result.serverNoContextTakeover { text += "; server_no_context_takeover" }
        result.clientNoContextTakeover = clientNoContextTakeover || offer.clientNoContextTakeover
        if result.clientNoContextTakeover { text += "; client_no_context_takeover" }
        switch offer.serverMaxWindowBits {
        case .absent:
            if serverMaxWindowBits < 15 { text += "; server_max_window_bits=\(serverMaxWindowBits)" }
        case .withoutValue: return nil
        case .bits(let bits):
            result.serverMaxWindowBits = min(bits, serverMaxWindowBits)
            text += "; server_max_window_bits=\(result.serverMaxWindowBits)"
        }
        switch offer.clientMaxWindowBits {
        // The client does not know the parameter, so the answer must not ask for less.
        case .absent: result.clientMaxWindowBits = 15
        case .withoutValue, .bits:
            if case .bits(let bits) = offer.clientMaxWindowBits {
                result.clientMaxWindowBits = min(bits, clientMaxWindowBits)
            }
            if result.clientMaxWindowBits < 15 { text += "; client_max_window_bits=\(result.clientMaxWindowBits)" }
        }
        return (text, result)
    }

    // MARK: - Parameters

    /// The four parameters of an offer or an answer, each at most once and with nothing else beside them.
    private struct Parameters {
        enum Window {
            case absent
            case withoutValue
            case bits(Int)
        }

        var serverNoContextTakeover = false
        var clientNoContextTakeover = false
        var serverMaxWindowBits = Window.absent
        var clientMaxWindowBits = Window.absent

        init(_ source: WebSocketExtension) throws(WebSocketRefusal) {
            for (index, parameter) in source.parameters.enumerated() {
                let name = parameter.name
                guard !source.parameters[..<index].contains(where: { $0.name == name }) else {
                    throw .compressionNotAsOffered("\(name) is there twice")
                }
                switch name {
                case "server_no_context_takeover", "client_no_context_takeover":
                    guard parameter.value == nil else { throw .compressionNotAsOffered("\(name) has a value") }
                    if name.hasPrefix("server") {
                        serverNoContextTakeover = true
                    } else {
                        clientNoContextTakeover = true
                    }
                case "server_max_window_bits": serverMaxWindowBits = try Self.window(parameter)
                case "client_max_window_bits": clientMaxWindowBits = try Self.window(parameter)
                default: throw .compressionNotAsOffered("\(name) is not a parameter of permessage-deflate")
                }
            }
        }

        /// 8 to 15 in decimal, without a leading zero.
        private static func window(_ parameter: WebSocketExtension.Parameter) throws(WebSocketRefusal) -> Window {
            guard let value = parameter.value else { return .withoutValue }
            guard let bits = WebSocketCompression.windowBits.first(where: { String($0) == value }) else {
                throw .compressionNotAsOffered("\(parameter.name) is not a number from 8 to 15")
            }
            return .bits(bits)
        }
    }
}
