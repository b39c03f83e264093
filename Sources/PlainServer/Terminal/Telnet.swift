import WireBytes

/// The telnet protocol of one connection: takes commands out of what a client sends, and agrees on options.
///
/// An option is asked for once and answered once, so that no two sides can ask each other for ever. Not Debian's libtelnet:
/// that is a state machine with callbacks and a growing buffer in C, and what is needed here is a value of a hundred lines that
/// any bytes leave bounded.
///
/// Source: RFC 854; RFC 855; RFC 857 (echo); RFC 858 (suppress go-ahead); RFC 856 (binary); RFC 860 (timing mark);
/// RFC 1073 (window size); RFC 1091 (terminal type).
struct Telnet {
    enum Event: Equatable {
        case byte(UInt8)
        /// An agreement on an option has changed.
        case agreed
        case windowSize(columns: Int, rows: Int)
        /// As the client writes it, in lower case.
        case terminalType(String)
        /// The answer to ``requestMark(_:)``: the client has all that was sent before.
        case mark(token: String)
        case interrupt
        case areYouThere
        case eraseCharacter
        case eraseLine
    }

    enum Option: UInt8 {
        case binary = 0
        case echo = 1
        case suppressGoAhead = 3
        case timingMark = 6
        case terminalType = 24
        case windowSize = 31
    }

    static let interpret: UInt8 = 255

    private enum Verb {
        static let will: UInt8 = 251
        static let wont: UInt8 = 252
        static let `do`: UInt8 = 253
        static let dont: UInt8 = 254
        static let begin: UInt8 = 250
        static let end: UInt8 = 240
        static let breaks: UInt8 = 243
        static let interrupt: UInt8 = 244
        static let areYouThere: UInt8 = 246
        static let eraseCharacter: UInt8 = 247
        static let eraseLine: UInt8 = 248
    }

    private enum Agreement { case no, asked, yes }

    private enum State {
        case data
        /// Behind IAC.
        case command
        /// Behind IAC and WILL, WONT, DO or DONT.
        case option(UInt8)
        /// Behind IAC SB.
        case parameters
        /// Behind an IAC in there.
        case parametersCommand
    }

    /// More parameters than any option above has; what is longer is left out.
    private static let maxParameterBytes = 64

    /// The client has sent a telnet command, so it is no plain socket.
    private(set) var isSpoken = false
    /// The next byte is text, but for 255.
    var isInText: Bool { if case .data = state { true } else { false } }
    /// To be sent.
    private(set) var output: [UInt8] = []
    private var state = State.data
    private var parameters: [UInt8] = []
    /// Of marks that are not answered yet.
    private var tokens: [String] = []
    private var ours: [Option: Agreement] = [:]
    private var theirs: [Option: Agreement] = [:]

    mutating func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Whether we do what the option says.
    func weDo(_ option: Option) -> Bool { ours[option] == .yes }

    func theyDo(_ option: Option) -> Bool { theirs[option] == .yes }

    // MARK: - Our side

    mutating func offer(_ option: Option) {
        guard ours[option, default: .no] == .no else { return }
        ours[option] = .asked
        send(Verb.will, option.rawValue)
    }

    mutating func withdraw(_ option: Option) {
        guard ours[option, default: .no] != .no else { return }
        ours[option] = .no
        send(Verb.wont, option.rawValue)
    }

    mutating func ask(_ option: Option) {
        guard theirs[option, default: .no] == .no else { return }
        theirs[option] = .asked
        send(Verb.do, option.rawValue)
    }

    /// Asks for ``Event/mark(token:)``. Every client answers: one that has no timing marks refuses each.
    /// Source: RFC 854, "General considerations"; RFC 860 §6.
    mutating func requestMark(_ token: String) {
        tokens.append(token)
        send(Verb.do, Option.timingMark.rawValue)
    }

    private mutating func send(_ verb: UInt8, _ option: UInt8) { output += [Self.interpret, verb, option] }

    // MARK: - Their side

    mutating func received(_ byte: UInt8) -> Event? {
        switch state {
        case .data:
            guard byte == Self.interpret else { return .byte(byte) }
            state = .command
            return nil
        case .command:
            state = .data
            // An escaped 255, which is a part of no UTF-8.
            if byte == Self.interpret { return .byte(byte) }
            isSpoken = true
            return commandReceived(byte)
        case .option(let verb):
            state = .data
            return optionReceived(verb, byte)
        case .parameters:
            if byte == Self.interpret {
                state = .parametersCommand
            } else if parameters.count <= Self.maxParameterBytes {
                parameters.append(byte)
            }
            return nil
        case .parametersCommand:
            if byte == Self.interpret {
                state = .parameters
                if parameters.count <= Self.maxParameterBytes { parameters.append(byte) }
                return nil
            }
            state = .data
            // Anything but the end is a command in the wrong place, which ends them as well.
            defer { parameters = [] }
            return byte == Verb.end ? parametersReceived() : commandReceived(byte)
        }
    }

    private mutating func commandReceived(_ byte: UInt8) -> Event? {
        switch byte {
        case Verb.will, Verb.wont, Verb.do, Verb.dont: state = .option(byte)
        case Verb.begin:
            state = .parameters
            parameters = []
        case Verb.interrupt, Verb.breaks: return .interrupt
        case Verb.areYouThere: return .areYouThere
        case Verb.eraseCharacter: return .eraseCharacter
        case Verb.eraseLine: return .eraseLine
        default: break
        }
        return nil
    }

    private mutating func optionReceived(_ verb: UInt8, _ code: UInt8) -> Event? {
        let option = Option(rawValue: code)
        switch verb {
        case Verb.will, Verb.wont:
            let wants = verb == Verb.will
            if option == .timingMark, !tokens.isEmpty { return .mark(token: tokens.removeFirst()) }
            guard let option, option != .echo, option != .timingMark else {
                if wants { send(Verb.dont, code) }
                return nil
            }
            let before = theirs[option, default: .no]
            theirs[option] = wants ? .yes : .no
            if wants, before == .no { send(Verb.do, code) }
            if !wants, before == .yes { send(Verb.dont, code) }
            if wants, before != .yes, option == .terminalType {
                output += [Self.interpret, Verb.begin, code, 1, Self.interpret, Verb.end]
            }
            return (before == .yes) == wants ? nil : .agreed
        default:
            let wants = verb == Verb.do
            switch option {
            case .binary?, .echo?, .suppressGoAhead?:
                guard let option else { return nil }
                let before = ours[option, default: .no]
                ours[option] = wants ? .yes : .no
                if wants, before == .no { send(Verb.will, code) }
                if !wants, before == .yes { send(Verb.wont, code) }
                return (before == .yes) == wants ? nil : .agreed
            case .timingMark?:
                if wants { send(Verb.will, code) }
                return nil
            case .terminalType?, .windowSize?, nil:
                if wants { send(Verb.wont, code) }
                return nil
            }
        }
    }

    private func parametersReceived() -> Event? {
        guard parameters.count <= Self.maxParameterBytes, let code = parameters.first else { return nil }
        switch Option(rawValue: code) {
        case .windowSize where parameters.count == 5:
            return .windowSize(
                columns: Int(parameters[1]) << 8 | Int(parameters[2]),
                rows: Int(parameters[3]) << 8 | Int(parameters[4]))
        case .terminalType where parameters.count > 2 && parameters[1] == 0:
            return .terminalType(String(decoding: parameters[2...], as: UTF8.self).lowercased())
        default: return nil
        }
    }
}
