import JSONText

// The protocol of the admin socket: one JSON object a line, both ways. docs/ADMIN.md describes it.
//
// A request is `{"request":"kick","id":7}`. Its answer is any number of `{"item":…}`, then one `{"done":{…}}` or
// `{"error":{"code":"…","message":"…"}}`. Requests of one connection are answered in their order; a request that streams is
// the last of its connection.

/// Limits on a connection.
enum AdminLimits {
    /// Connections at once: a few operators and scripts, each with a status or a tail.
    static let maxConnections = 16
    /// Bytes of a request: a message to say, and its frame.
    static let maxRequestBytes = 64 * 1024
    /// Requests that wait behind the one being answered.
    static let maxWaiting = 16
    /// Bytes that may wait for a reader; with more it is disconnected. The largest single answer is the status of 10,000
    /// clients.
    static let sendQueueBytes = 16 * 1024 * 1024
    /// Bytes that may wait for a reader of a stream; with more, lines are left out. Histories pause there.
    static let streamQueueBytes = 256 * 1024
}

/// Why a request is not carried out.
struct AdminFailure: Error, Equatable {
    enum Code: String, CaseIterable {
        /// Not a request of this protocol, or one with wrong arguments.
        case badRequest = "bad-request"
        /// There is no such room or client.
        case notFound = "not-found"
        /// A process of another user, or too many connections.
        case refused
        /// It cannot be done now.
        case unavailable
        /// The configuration was read and has errors.
        case configuration
    }

    var code: Code
    /// A sentence without a full stop.
    var message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Reads the value of `error`; an unknown code of another version counts as unavailable.
    init(_ json: JSONValue) {
        code = json["code"]?.string.flatMap(Code.init(rawValue:)) ?? .unavailable
        message = json["message"]?.string ?? "the bridge does not say why"
    }

    var json: JSONValue { .object([.init("code", .string(code.rawValue)), .init("message", .string(message))]) }
}

/// A line of an answer.
enum AdminLine: Equatable {
    case item(JSONValue)
    case done(JSONValue)
    case error(AdminFailure)

    /// With its newline.
    var bytes: [UInt8] {
        let member: JSONValue.Member =
            switch self {
            case .item(let value): .init("item", value)
            case .done(let value): .init("done", value)
            case .error(let failure): .init("error", failure.json)
            }
        return JSONValue.object([member]).bytes + [UInt8(ascii: "\n")]
    }

    /// Nil: it is no line of an answer.
    init?(_ line: [UInt8]) {
        guard let json = try? JSONValue(parsing: line) else { return nil }
        if let item = json["item"] {
            self = .item(item)
        } else if let done = json["done"] {
            self = .done(done)
        } else if let error = json["error"] {
            self = .error(AdminFailure(error))
        } else {
            return nil
        }
    }
}

/// A request with checked arguments.
struct AdminCall: Equatable {
    let request: AdminRequest
    private let arguments: [JSONValue.Member]

    /// - Throws: a sentence about the first argument that is missing, unknown or of another kind.
    init(_ request: AdminRequest, _ arguments: [JSONValue.Member] = []) throws(AdminFailure) {
        let row = AdminTable.row(request)
        for member in arguments {
            guard let argument = row.arguments.first(where: { $0.name == member.key }) else {
                throw AdminFailure(.badRequest, "\"\(request.rawValue)\" has no argument \"\(member.key)\"")
            }
            guard argument.kind.accepts(member.value) else {
                throw AdminFailure(.badRequest, "\"\(argument.name)\" is \(argument.kind.words)")
            }
        }
        for argument in row.arguments where argument.isRequired {
            guard arguments.contains(where: { $0.key == argument.name }) else {
                throw AdminFailure(.badRequest, "\"\(request.rawValue)\" needs \"\(argument.name)\"")
            }
        }
        self.request = request
        self.arguments = arguments
    }

    /// Reads a line of a client.
    init(line: [UInt8]) throws(AdminFailure) {
        guard let json = try? JSONValue(parsing: line), case .object(let members) = json else {
            throw AdminFailure(.badRequest, "a request is one JSON object in a line")
        }
        guard let name = json["request"]?.string else {
            throw AdminFailure(.badRequest, "\"request\" names the request")
        }
        guard let request = AdminRequest(rawValue: name) else {
            let known = AdminTable.rows.map(\.request.rawValue).joined(separator: ", ")
            throw AdminFailure(.badRequest, "there is no request \"\(name)\"; there are: \(known)")
        }
        try self.init(request, members.filter { $0.key != "request" })
    }

    /// As a client sends it, with the newline.
    var line: [UInt8] {
        JSONValue.object([.init("request", .string(request.rawValue))] + arguments).bytes + [UInt8(ascii: "\n")]
    }

    private func value(_ name: String) -> JSONValue? { arguments.last { $0.key == name }?.value }

    func text(_ name: String) -> String? { value(name)?.string }
    func number(_ name: String) -> Int64? { value(name)?.integer }
    func flag(_ name: String) -> Bool { value(name)?.bool ?? false }
}

/// Cuts a connection's bytes into lines.
struct AdminInput {
    private var bytes: [UInt8] = []

    /// Whole lines, without their ends. Nil: a line is longer than a request may be.
    mutating func received(_ more: UnsafeRawBufferPointer) -> [[UInt8]]? {
        bytes += more
        var lines: [[UInt8]] = []
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            guard end - start <= AdminLimits.maxRequestBytes else { return nil }
            let line = bytes[start..<end]
            start = end + 1
            if line.contains(where: { $0 > 0x20 }) { lines.append(Array(line)) }
        }
        bytes.removeFirst(start)
        return bytes.count <= AdminLimits.maxRequestBytes ? lines : nil
    }

    /// A last line without its end.
    mutating func rest() -> [UInt8]? {
        defer { bytes = [] }
        return bytes.contains { $0 > 0x20 } ? bytes : nil
    }
}
