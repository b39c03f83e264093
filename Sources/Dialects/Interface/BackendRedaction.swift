// What calls carry are passwords and tokens, in bodies of any form. None of them is shown by printing a value.

extension BackendCall: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        switch self {
        case .logIn: "log in"
        case .refresh: "refresh"
        case .whoAmI: "who am I"
        case .rooms: "rooms"
        case .history: "history"
        case .markRead: "mark read"
        case .upload(let file): "upload of \(file.bytes.count) bytes"
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension BackendRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method and path; neither query nor body.
    public var description: String {
        method.rawValue + " " + String(decoding: target.utf8.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension BackendRequest.Body: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        switch self {
        case .none: "nothing"
        case .json(let bytes): "JSON of \(bytes.count) bytes"
        case .multipart(_, _, let file): "a file of \(file.bytes.count) bytes"
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension BackendAnswer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "\(status) with \(body.count) bytes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
