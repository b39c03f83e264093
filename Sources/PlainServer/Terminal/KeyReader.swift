import WireBytes

/// What a person presses.
enum Key: Equatable {
    case scalar(Unicode.Scalar)
    case enter
    case backspace
    case delete
    case left
    case right
    case up
    case down
    case home
    case end
    case tab
    /// To the beginning of the line.
    case eraseLine
    case eraseToEnd
    case eraseWord
    case interrupt
    case endOfInput
    case redraw
    /// Bytes that are no UTF-8.
    case unreadable
}

/// Bytes of a terminal to keys.
///
/// Source: ECMA-48 §5.4 (control sequences); RFC 854, "The NVT printer and keyboard" (CR LF, CR NUL); RFC 3629.
struct KeyReader {
    private enum State {
        case ground
        /// Behind a CR: a LF or NUL belongs to it.
        case behindReturn
        case escape
        case sequence([UInt8])
        case character([UInt8], count: Int)
    }

    /// Longer ones are none that a key sends.
    private static let maxSequenceBytes = 16

    private var state = State.ground

    mutating func received(_ byte: UInt8) -> Key? {
        switch state {
        case .behindReturn:
            state = .ground
            return byte == 0x0A || byte == 0 ? nil : ground(byte)
        case .ground: return ground(byte)
        case .escape:
            // `ESC [` and `ESC O` begin a key, anything else is a key held with Alt.
            state = byte == 0x5B || byte == 0x4F ? .sequence([]) : .ground
            return nil
        case .sequence(var bytes):
            guard byte >= 0x40 && byte <= 0x7E else {
                bytes.append(byte)
                state = byte < 0x20 || bytes.count > Self.maxSequenceBytes ? .ground : .sequence(bytes)
                return nil
            }
            state = .ground
            return Self.key(bytes, byte)
        case .character(var bytes, let count):
            guard byte & 0xC0 == 0x80 else {
                state = .ground
                return byte < 0x80 && byte >= 0x20 ? .unreadable : ground(byte) ?? .unreadable
            }
            bytes.append(byte)
            guard bytes.count == count else {
                state = .character(bytes, count: count)
                return nil
            }
            state = .ground
            guard let text = String(validating: bytes, as: UTF8.self), let scalar = text.unicodeScalars.first else {
                return .unreadable
            }
            return Self.isControl(scalar) ? nil : .scalar(scalar)
        }
    }

    private mutating func ground(_ byte: UInt8) -> Key? {
        switch byte {
        case 0x0D:
            state = .behindReturn
            return .enter
        case 0x0A: return .enter
        case 0x08, 0x7F: return .backspace
        case 0x09: return .tab
        case 0x01: return .home
        case 0x02: return .left
        case 0x03: return .interrupt
        case 0x04: return .endOfInput
        case 0x05: return .end
        case 0x06: return .right
        case 0x0B: return .eraseToEnd
        case 0x0C: return .redraw
        case 0x0E: return .down
        case 0x10: return .up
        case 0x15: return .eraseLine
        case 0x17: return .eraseWord
        case 0x1B:
            state = .escape
            return nil
        case 0x20...0x7E: return .scalar(Unicode.Scalar(byte))
        case 0xC2...0xDF: state = .character([byte], count: 2)
        case 0xE0...0xEF: state = .character([byte], count: 3)
        case 0xF0...0xF4: state = .character([byte], count: 4)
        case 0x80...0xFF: return .unreadable
        default: break
        }
        return nil
    }

    /// C1: some terminals take them for commands.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { (0x80...0x9F).contains(scalar.value) }

    private static func key(_ parameters: [UInt8], _ final: UInt8) -> Key? {
        switch final {
        case UInt8(ascii: "A"): return .up
        case UInt8(ascii: "B"): return .down
        case UInt8(ascii: "C"): return .right
        case UInt8(ascii: "D"): return .left
        case UInt8(ascii: "H"): return .home
        case UInt8(ascii: "F"): return .end
        case UInt8(ascii: "~"):
            switch String(decoding: parameters, as: UTF8.self) {
            case "1", "7": return .home
            case "4", "8": return .end
            case "3": return .delete
            default: return nil
            }
        default: return nil
        }
    }
}
