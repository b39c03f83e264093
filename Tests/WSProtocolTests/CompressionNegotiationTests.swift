import BridgeTestSupport
import HTTPProtocol
import Testing
import WireBytes

@testable import WSProtocol

@Suite("Sec-WebSocket-Extensions")
struct ExtensionListTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var fields: [String]
        /// `name;parameter=value` each; nil where the list is malformed.
        var parsed: [String]?

        var testDescription: String { fields.joined(separator: " | ") }

        init(_ fields: String..., as parsed: [String]?) { (self.fields, self.parsed) = (fields, parsed) }
    }

    static let rows: [Row] = [
        Row("", as: []), Row(" , ,", as: []), Row("a", as: ["a"]), Row("a, b", as: ["a", "b"]),
        Row("a", "b", as: ["a", "b"]), Row("a,,b,", as: ["a", "b"]), Row("a; b; c=1", as: ["a;b;c=1"]),
        Row("a;b=\"1\"", as: ["a;b=1"]), Row("a;b=\"\\1\\2\"", as: ["a;b=12"]),
        Row("a ;\tb = 1 , c", as: ["a;b=1", "c"]),
        Row("a;b=\"1\" ; c", as: ["a;b=1;c"]), Row("a;b;b", as: ["a;b;b"]),
        Row("a b", as: nil), Row("a;", as: nil), Row("a;;b", as: nil), Row(";a", as: nil), Row("a;b=", as: nil),
        Row("a;=1", as: nil), Row("a;b=\"", as: nil), Row("a;b=\"1", as: nil), Row("a;b=\"\"", as: nil),
        Row("a;b=\"1 2\"", as: nil), Row("a;b=\"1,2\"", as: nil), Row("a;b=\"1\\", as: nil), Row("a;b=\" 1\"", as: nil),
        Row("a;b=\"1\"2", as: nil), Row("a=1", as: nil), Row("é", as: nil), Row("a", "b;", as: nil),
        Row("\"a\"", as: nil),
    ]

    @Test("a list is taken apart or refused", arguments: rows)
    func lists(_ row: Row) {
        let parsed = WebSocketExtension.parse(row.fields)?.map { one in
            ([one.name]
                + one.parameters.map { parameter in
                    parameter.value.map { "\(parameter.name)=\($0)" } ?? parameter.name
                })
                .joined(separator: ";")
        }
        #expect(parsed == row.parsed)
    }

    @Test("any text is taken apart or refused", arguments: UInt64(1)...20)
    func anyText(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        let alphabet = Array("ab;,=\"\\ \t")
        for _ in 0..<200 {
            let text = String((0..<12).map { _ in alphabet.randomElement(using: &rng) ?? "a" })
            for one in WebSocketExtension.parse([text]) ?? [] {
                #expect(ASCII.isToken(one.name), "\(rng): \(text)")
                for parameter in one.parameters {
                    #expect(ASCII.isToken(parameter.name) && ASCII.isToken(parameter.value ?? "x"), "\(rng): \(text)")
                }
            }
        }
    }
}

@Suite("permessage-deflate: negotiation")
struct CompressionNegotiationTests {
    typealias Wish = WebSocketCompression

    /// An agreement in four words: flags of server and client, windows of server and client.
    static func short(_ agreed: WebSocketCompression?) -> String? {
        agreed.map {
            "\($0.serverNoContextTakeover ? "S" : "-")\($0.clientNoContextTakeover ? "C" : "-") "
                + "\($0.serverMaxWindowBits) \($0.clientMaxWindowBits)"
        }
    }

    // MARK: - Offers

    @Test(
        "an offer says what is wished",
        arguments: [
            (Wish(), "permessage-deflate; client_max_window_bits"),
            (
                Wish(clientNoContextTakeover: true),
                "permessage-deflate; client_no_context_takeover; client_max_window_bits"
            ),
            (
                Wish(serverNoContextTakeover: true, serverMaxWindowBits: 9, clientMaxWindowBits: 8),
                "permessage-deflate; server_no_context_takeover; server_max_window_bits=9; client_max_window_bits=8"
            ),
            (Wish(serverMaxWindowBits: 99, clientMaxWindowBits: -1), "permessage-deflate; client_max_window_bits=8"),
        ])
    func offers(wish: Wish, offer: String) { #expect(wish.offer == offer) }

    // MARK: - Answers that a client gets

    struct Answer: CustomTestStringConvertible, Sendable {
        var wish: Wish
        /// Parameters of the answer.
        var answer: String
        /// Nil for a refusal.
        var agreed: String?

        var testDescription: String { "\(answer.isEmpty ? "(nothing)" : answer) for \(wish.offer)" }

        init(_ wish: Wish, _ answer: String, _ agreed: String?) {
            (self.wish, self.answer, self.agreed) = (wish, answer, agreed)
        }
    }

    static let answers: [Answer] = [
        Answer(Wish(), "", "-- 15 15"),
        Answer(Wish(), "server_no_context_takeover", "S- 15 15"),
        Answer(Wish(), "client_no_context_takeover", "-C 15 15"),
        Answer(Wish(clientNoContextTakeover: true), "", "-C 15 15"),
        Answer(Wish(), "server_max_window_bits=8", "-- 8 15"),
        Answer(Wish(), "server_max_window_bits=\"10\"", "-- 10 15"),
        Answer(Wish(), "client_max_window_bits=8", "-- 15 8"),
        Answer(Wish(clientMaxWindowBits: 10), "", "-- 15 10"),
        Answer(Wish(clientMaxWindowBits: 10), "client_max_window_bits=9", "-- 15 9"),
        Answer(Wish(serverMaxWindowBits: 10), "server_max_window_bits=10", "-- 10 15"),
        Answer(Wish(serverNoContextTakeover: true), "server_no_context_takeover", "S- 15 15"),
        Answer(
            Wish(),
            "client_max_window_bits=15; server_max_window_bits=15; client_no_context_takeover; server_no_context_takeover",
            "SC 15 15"),
        // Answers that do not fit the offer, §7.1.1.1, §7.1.2.
        Answer(Wish(serverNoContextTakeover: true), "", nil),
        Answer(Wish(serverMaxWindowBits: 10), "", nil),
        Answer(Wish(serverMaxWindowBits: 10), "server_max_window_bits=11", nil),
        Answer(Wish(clientMaxWindowBits: 10), "client_max_window_bits=11", nil),
        // Answers without meaning, §7.1.
        Answer(Wish(), "client_max_window_bits", nil), Answer(Wish(), "server_max_window_bits", nil),
        Answer(Wish(), "server_max_window_bits=7", nil), Answer(Wish(), "server_max_window_bits=16", nil),
        Answer(Wish(), "server_max_window_bits=08", nil), Answer(Wish(), "server_max_window_bits=+9", nil),
        Answer(Wish(), "server_max_window_bits=99999999999999999999", nil),
        Answer(Wish(), "client_max_window_bits=x", nil), Answer(Wish(), "server_no_context_takeover=1", nil),
        Answer(Wish(), "client_no_context_takeover=true", nil),
        Answer(Wish(), "server_no_context_takeover; server_no_context_takeover", nil),
        Answer(Wish(), "client_max_window_bits=9; client_max_window_bits=9", nil),
        Answer(Wish(), "no_such_parameter", nil), Answer(Wish(), "Server_no_context_takeover", nil),
    ]

    @Test("a client takes an answer that fits its offer and gives up on any other", arguments: answers)
    func clientJudges(_ row: Answer) throws {
        let field = "permessage-deflate" + (row.answer.isEmpty ? "" : "; " + row.answer)
        let (outcome, agreed) = try Self.client(row.wish, answer: field)
        #expect(Self.short(agreed) == row.agreed)
        if case .refused(.compressionNotAsOffered(let why)) = outcome {
            #expect(row.agreed == nil && !why.isEmpty)
        } else {
            #expect(row.agreed != nil)
        }
    }

    @Test("a client gives up on extensions that it did not offer, and on a list that is none")
    func clientRefuses() throws {
        func refusal(_ wish: Wish?, _ field: String) throws -> WebSocketRefusal? {
            guard case .refused(let refusal) = try Self.client(wish, answer: field).0 else { return nil }
            return refusal
        }
        #expect(try refusal(nil, "permessage-deflate") == .extensionNotOffered("permessage-deflate"))
        #expect(try refusal(Wish(), "x-webkit-deflate-frame") == .extensionNotOffered("x-webkit-deflate-frame"))
        #expect(try refusal(Wish(), "permessage-deflate, x") == .extensionNotOffered("x"))
        #expect(
            try refusal(Wish(), "permessage-deflate, permessage-deflate")
                == .compressionNotAsOffered("it is there twice"))
        #expect(
            try refusal(Wish(), "permessage-deflate;") == .notWebSocket("Sec-WebSocket-Extensions is malformed"))
        let (outcome, agreed) = try Self.client(Wish(), answer: "")
        #expect(agreed == nil)
        if case .refused = outcome { Issue.record("a server may decline") }
    }

    static func client(
        _ wish: Wish?, answer: String
    ) throws -> (WebSocketClientHandshake.Outcome, WebSocketCompression?) {
        let url = try HTTPURL(parsing: "ws://h/")
        var client = try WebSocketClientHandshake(url: url, compression: wish, nonce: Array("the sample nonce".utf8))
        let response = """
            HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Extensions: \(answer)\r\n\r\n
            """
        let outcome = Array(response.utf8).withUnsafeBytes { client.bytesReceived($0) }
        return (outcome, client.compression)
    }

    // MARK: - Offers that a server gets

    struct Offer: CustomTestStringConvertible, Sendable {
        var wish: Wish
        var offer: String
        /// Nil when it is declined.
        var answer: String?
        var agreed: String?

        var testDescription: String { offer }

        init(wish: Wish = Wish(), _ offer: String, _ answer: String?, _ agreed: String? = nil) {
            (self.wish, self.offer, self.answer, self.agreed) = (wish, offer, answer, agreed)
        }
    }

    static let pmd = "permessage-deflate"

    static let serverRows: [Offer] = [
        Offer("", nil), Offer("x-other", nil),
        Offer(pmd, pmd, "-- 15 15"),
        Offer("x-other, \(pmd)", pmd, "-- 15 15"),
        Offer("\(pmd); server_no_context_takeover", "\(pmd); server_no_context_takeover", "S- 15 15"),
        Offer("\(pmd); client_no_context_takeover", "\(pmd); client_no_context_takeover", "-C 15 15"),
        Offer("\(pmd); server_max_window_bits=8", "\(pmd); server_max_window_bits=8", "-- 8 15"),
        Offer("\(pmd); server_max_window_bits=\"12\"", "\(pmd); server_max_window_bits=12", "-- 12 15"),
        Offer("\(pmd); client_max_window_bits", pmd, "-- 15 15"),
        Offer("\(pmd); client_max_window_bits=9", "\(pmd); client_max_window_bits=9", "-- 15 9"),
        Offer(
            wish: Wish(clientMaxWindowBits: 10), "\(pmd); client_max_window_bits", "\(pmd); client_max_window_bits=10",
            "-- 15 10"),
        Offer(
            wish: Wish(clientMaxWindowBits: 10), "\(pmd); client_max_window_bits=9", "\(pmd); client_max_window_bits=9",
            "-- 15 9"),
        Offer(wish: Wish(clientMaxWindowBits: 10), pmd, pmd, "-- 15 15"),
        Offer(wish: Wish(serverMaxWindowBits: 10), pmd, "\(pmd); server_max_window_bits=10", "-- 10 15"),
        Offer(
            wish: Wish(serverMaxWindowBits: 10), "\(pmd); server_max_window_bits=12",
            "\(pmd); server_max_window_bits=10",
            "-- 10 15"),
        Offer(
            wish: Wish(serverNoContextTakeover: true, clientNoContextTakeover: true), pmd,
            "\(pmd); server_no_context_takeover; client_no_context_takeover", "SC 15 15"),
        // The first offer that makes sense wins, §5.1.
        Offer("\(pmd); server_max_window_bits=10, \(pmd)", "\(pmd); server_max_window_bits=10", "-- 10 15"),
        Offer("\(pmd); unknown, \(pmd); client_max_window_bits", pmd, "-- 15 15"),
        Offer("\(pmd); server_max_window_bits, \(pmd)", pmd, "-- 15 15"),
        Offer("\(pmd); server_max_window_bits=7", nil), Offer("\(pmd); server_max_window_bits=16", nil),
        Offer("\(pmd); server_max_window_bits=010", nil), Offer("\(pmd); client_max_window_bits=\"16\"", nil),
        Offer("\(pmd); client_no_context_takeover=1", nil),
        Offer("\(pmd); client_max_window_bits; client_max_window_bits", nil),
        Offer("\(pmd); unknown", nil), Offer("Permessage-Deflate", nil),
    ]

    @Test("a server answers the first offer that it can meet, or none", arguments: serverRows)
    func serverAnswers(_ row: Offer) {
        var server = WebSocketServerHandshake(compression: row.wish)
        let text = Self.response(&server, offer: row.offer)
        #expect(Self.short(server.compression) == row.agreed)
        let line = text.components(between: "\r\nSec-WebSocket-Extensions: ", and: "\r\n")
        #expect(line == row.answer)
    }

    @Test("a server without compression declines every offer, and refuses a list that is none")
    func serverDeclines() {
        var plain = WebSocketServerHandshake()
        let text = Self.response(&plain, offer: Self.pmd)
        #expect(plain.compression == nil && text.hasPrefix("HTTP/1.1 101") && !text.contains("Extensions"))
        var server = WebSocketServerHandshake(compression: Wish())
        #expect(Self.response(&server, offer: "\(Self.pmd); a=\"").hasPrefix("HTTP/1.1 400"))
    }

    static func response(_ server: inout WebSocketServerHandshake, offer: String) -> String {
        let request = """
            GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Extensions: \(offer)\r\n\r\n
            """
        switch Array(request.utf8).withUnsafeBytes({ server.bytesReceived($0) }) {
        case .refused(let response, _): return String(decoding: response, as: UTF8.self)
        default:
            var out = ByteWriter()
            _ = server.accept(into: &out)
            return out.take().text
        }
    }
}

extension String {
    /// The text between the first `start` and the next `end`, or nil.
    fileprivate func components(between start: String, and end: String) -> String? {
        guard let from = firstRange(of: start)?.upperBound else { return nil }
        let rest = self[from...]
        return rest.firstRange(of: end).map { String(rest[..<$0.lowerBound]) }
    }
}
