import BridgeTestSupport
import ChatModel
import Configuration
import Foundation
import JSONText
import Testing

@testable import ChatBridge

@Suite("Admin protocol")
struct AdminProtocolTests {
    struct Refusal: CustomTestStringConvertible, Sendable {
        var line: String
        var message: String
        var testDescription: String { line }
    }

    static let refusals = [
        Refusal(line: "hello", message: "a request is one JSON object in a line"),
        Refusal(line: "[1]", message: "a request is one JSON object in a line"),
        Refusal(line: "{}", message: "\"request\" names the request"),
        Refusal(line: "{\"request\":7}", message: "\"request\" names the request"),
        Refusal(
            line: "{\"request\":\"statsu\"}",
            message: "there is no request \"statsu\"; there are: "
                + AdminRequest.allCases.map(\.rawValue).joined(separator: ", ")),
        Refusal(line: "{\"request\":\"kick\"}", message: "\"kick\" needs \"id\""),
        Refusal(line: "{\"request\":\"kick\",\"id\":\"7\"}", message: "\"id\" is a whole number"),
        Refusal(line: "{\"request\":\"tail\",\"raw\":1}", message: "\"raw\" is true or false"),
        Refusal(line: "{\"request\":\"say\",\"room\":\"a\",\"text\":null}", message: "\"text\" is a string"),
        Refusal(line: "{\"request\":\"status\",\"room\":\"a\"}", message: "\"status\" has no argument \"room\""),
    ]

    @Test("a line that is no request is refused, and the reason says why", arguments: refusals)
    func refuses(_ row: Refusal) {
        #expect(throws: AdminFailure(.badRequest, row.message)) { try AdminCall(line: Array(row.line.utf8)) }
    }

    @Test(
        "every request has one row, and what a client writes is what the bridge reads", arguments: AdminRequest.allCases
    )
    func roundTrip(_ request: AdminRequest) throws {
        #expect(AdminTable.rows.filter { $0.request == request }.count == 1)
        let row = AdminTable.row(request)
        #expect(row.request == request)
        let arguments = row.arguments.map { argument -> JSONValue.Member in
            switch argument.kind {
            case .text: .init(argument.name, .string("a \"b\"\n"))
            case .number: .init(argument.name, .integer(-7))
            case .flag: .init(argument.name, .bool(true))
            }
        }
        let call = try AdminCall(request, arguments)
        #expect(call.line.last == UInt8(ascii: "\n") && !call.line.dropLast().contains(UInt8(ascii: "\n")))
        #expect(try AdminCall(line: Array(call.line.dropLast())) == call)
        // Required arguments alone will do.
        let required = arguments.filter { member in
            row.arguments.contains { $0.name == member.key && $0.isRequired }
        }
        #expect(throws: Never.self) { try AdminCall(request, required) }
    }

    @Test("an answer's lines read back as what they were")
    func lines() {
        let lines: [AdminLine] = [
            .item(.object([.init("a", .string("b\n"))])), .done(.object([])),
            .error(AdminFailure(.notFound, "there is no room \"x\"")),
        ]
        for line in lines { #expect(AdminLine(Array(line.bytes.dropLast())) == line) }
        #expect(AdminLine(Array("{}".utf8)) == nil)
        #expect(AdminLine(Array("hello".utf8)) == nil)
    }

    private static func received(_ pieces: [[UInt8]]) -> [[UInt8]]? {
        var input = AdminInput()
        var lines: [[UInt8]] = []
        for piece in pieces {
            guard let more = piece.withUnsafeBytes({ input.received($0) }) else { return nil }
            lines += more
        }
        return lines
    }

    @Test("lines are the same however their bytes arrive, and empty ones are none")
    func splits() {
        let bytes = Array("{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c".utf8)
        let whole = Self.received([bytes])
        #expect(whole?.map { String(decoding: $0, as: UTF8.self) } == ["{\"a\":1}\r", "{\"b\":2}"])
        #expect(Self.received(bytes.map { [$0] }) == whole)
        for cut in bytes.indices { #expect(Self.received([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole) }
    }

    @Test("a request that is too long is noticed at the byte, with or without its end")
    func tooLong() {
        let most = [UInt8](repeating: UInt8(ascii: "x"), count: AdminLimits.maxRequestBytes)
        #expect(Self.received([most])?.count == 0)
        #expect(Self.received([most + [UInt8(ascii: "\n")]])?.count == 1)
        #expect(Self.received([most + [UInt8(ascii: "x")]]) == nil)
        #expect(Self.received([most + Array("x\n".utf8)]) == nil)
    }

    @Test(
        "each error of a request is an exit status of its command",
        arguments: [
            (.badRequest, 64), (.notFound, 65), (.unavailable, 69), (.refused, 77), (.configuration, 78),
        ] as [(AdminFailure.Code, Int32)])
    func exitStatus(_ code: AdminFailure.Code, _ status: Int32) {
        #expect(AdminClientError.failed(AdminFailure(code, "so it is")).exitCode == status)
    }

    @Test("a bridge that does not answer is unavailable, a socket that may not be opened forbidden")
    func otherStatus() {
        #expect(AdminClientError.noBridge(paths: ["/s"], reason: "there is no such file").exitCode == 69)
        #expect(AdminClientError.lost("the bridge closed the connection").exitCode == 69)
        #expect(AdminClientError.forbidden(path: "/s").exitCode == 77)
    }

    /// A message with every member that there is.
    private static let full = StoredMessage(
        kind: .gap, sequence: 1, msgid: "m", upstreamID: ChatID("u"), sender: ChatPerson(id: ChatID("p"), name: "Ada"),
        at: ChatTimestamp(milliseconds: 1), backendAt: ChatTimestamp(milliseconds: 2),
        gapFrom: ChatTimestamp(milliseconds: 3), nick: "ada", source: "ada!a@h", account: "ada", text: "hi",
        sentAs: "ada: hi", attachments: [ChatAttachment(kind: .image, url: "https://h/a.png")], isEncrypted: true,
        replyTo: "n", clientTags: [StoredTag(name: "+x", value: "y")], author: ChatID("a"), client: "phone",
        isTakenBack: true)

    @Test("the page about the socket has every request with its arguments, every error, list and member")
    func documented() throws {
        let page = try RepositoryFile.text("docs/ADMIN.md")
        let rows = page.split(separator: "\n")
        for row in AdminTable.rows {
            let line = try #require(rows.first { $0.hasPrefix("| `\(row.request.rawValue)` |") }, "\(row.request)")
            for argument in row.arguments {
                #expect(line.contains("`\(argument.name)`" + (argument.isRequired ? " (required)" : "")))
            }
        }
        for code in AdminFailure.Code.allCases {
            let status = AdminClientError.failed(AdminFailure(code, "")).exitCode
            #expect(rows.contains { $0.hasPrefix("| `\(code.rawValue)` |") && $0.hasSuffix("| \(status) |") })
        }
        for flow in TailFlow.allCases { #expect(page.contains("`\(flow.rawValue)`")) }
        let reload = try #require(rows.first { $0.hasPrefix("| `reload` |") })
        for list in ConfigurationChange(from: Configuration(), to: Configuration()).lists {
            #expect(reload.contains("`\(list.title)`"), "\(list.title)")
        }
        let items = try #require(
            page.split(separator: "### Items of `history` and `export`").last?.split(separator: "\n#").first)
        for member in Self.full.json(room: "lobby").object ?? [] {
            #expect(items.contains("`\(member.key)`"), "\(member.key)")
        }
    }
}
