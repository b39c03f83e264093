import CZlib
import WireBytes

// DEFLATE without header and checksum, as permessage-deflate has it. zlib keeps a pointer to its stream, so a stream has
// memory of its own that never moves.
//
// Source: RFC 1951; RFC 7692 §7.2.

/// The end of every compressed message, which is not sent: the length of an empty stored block, 00 00 FF FF.
///
/// Source: RFC 7692 §7.2.1.
enum DeflateTail {
    static let byteCount = 4
    static let word = UInt32(0x0000_FFFF).bigEndian
}

/// Decompresses messages; they may refer back to earlier ones as far as the window reaches.
///
/// A peer that refers back further than the agreed window is noticed or not, depending on how much was decompressed in
/// one go; it then reads its own earlier text, never other memory.
struct Inflater: ~Copyable {
    enum Step {
        /// All input is taken, and everything that it stands for was written.
        case inputTaken
        case roomFilled
        /// The bytes are not DEFLATE.
        case broken
    }

    private let stream: UnsafeMutablePointer<z_stream>
    /// The bytes so far end with a block that calls itself the last one.
    private var isAtEnd = false

    /// - Parameter windowBits: 8 to 15. Nil without memory for it.
    init?(windowBits: Int) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard cz_inflate_init(stream, Int32(clamping: windowBits)) == Z_OK else {
            stream.deallocate()
            return nil
        }
        self.stream = stream
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Whether the bytes so far end where a block does, so that nothing is held back.
    var isBetweenBlocks: Bool { isAtEnd || stream.pointee.data_type & Self.betweenBlocks != 0 }

    /// Whether the peer has ended the stream, so that no ``DeflateTail`` is missing.
    var hasEnded: Bool { isAtEnd }

    /// Source: zlib.h, `inflate`: "128 if inflate() returned immediately after decoding an end-of-block code".
    private static let betweenBlocks: Int32 = 128

    /// Takes bytes from the front of `input` and appends at most `room` bytes to `output`.
    ///
    /// Bytes before a broken one are appended. A stream that ends is followed by another one that may refer back to it:
    /// its last block is only a way to flush (RFC 7692 §7.2.3.4). The restart costs no copy of the window, so that a
    /// message of nothing but such ends is no attack; hence zlib's little-known `inflateResetKeep`.
    mutating func inflate(
        _ input: inout UnsafeRawBufferPointer, into output: inout ReceiveBuffer, upTo room: Int
    ) -> Step {
        let stream = stream
        var result = Z_OK
        var left = min(max(room, 0), Int(UInt32.max))
        while true {
            let piece = UnsafeRawBufferPointer(rebasing: input.prefix(Int(UInt32.max)))
            var isFull = false
            output.append(upTo: left) { target in
                stream.pointee.next_in = UnsafeMutablePointer(
                    mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
                stream.pointee.avail_in = UInt32(clamping: piece.count)
                stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(clamping: target.count)
                result = CZlib.inflate(stream, Z_SYNC_FLUSH)
                isFull = stream.pointee.avail_out == 0
                return target.count - Int(stream.pointee.avail_out)
            }
            let taken = piece.count - Int(stream.pointee.avail_in)
            let written = left - Int(stream.pointee.avail_out)
            input = UnsafeRawBufferPointer(rebasing: input[taken...])
            left -= written
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
            if taken > 0 { isAtEnd = false }
            switch result {
            case Z_STREAM_END:
                guard cz_inflate_continue(stream) == Z_OK else { return .broken }
                isAtEnd = true
            case Z_OK, Z_BUF_ERROR: break
            default: return .broken
            }
            if isFull { return .roomFilled }
            if input.isEmpty { return .inputTaken }
            // Neither bytes taken nor written: zlib will not go on, whatever the reason.
            if taken == 0, written == 0 { return .broken }
        }
    }
}

/// Compresses messages, with references to earlier ones as far as the window reaches.
struct Deflater: ~Copyable {
    /// zlib's own middle between speed and size, 1 to 9.
    static let level: Int32 = 6
    /// Bytes of room given to zlib at a time, unless less is enough; more than the six bytes of a flush.
    static let roomBytes = 16 * 1024

    private let stream: UnsafeMutablePointer<z_stream>

    /// - Parameter windowBits: 8 to 15. Nil without memory for it.
    ///
    /// zlib has no raw stream with 8. With 9 it never refers back further than 512 − 262 = 250 bytes, because it
    /// reserves room for the longest match within its window; so its output can be read with a window of 8 bits, 256
    /// bytes.
    init?(windowBits: Int) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let bits = min(max(windowBits, 9), 15)
        // Tables as large as the window deserves: 8 is zlib's default for the largest.
        guard cz_deflate_init(stream, Self.level, Int32(bits), Int32(min(bits - 6, 8))) == Z_OK else {
            stream.deallocate()
            return nil
        }
        self.stream = stream
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// A window that sees the whole of a single message and is no larger than `windowBits`.
    static func windowBits(forMessageOf byteCount: Int, atMost windowBits: Int) -> Int {
        var bits = 9
        // 262 as above.
        while bits < windowBits, (1 << bits) - 262 < byteCount { bits += 1 }
        return bits
    }

    /// Appends `message`, which is not empty, compressed and without ``DeflateTail``. False when zlib fails; the
    /// appended bytes are then of no use, and neither is the compressor.
    mutating func deflate(_ message: UnsafeRawBufferPointer, into output: inout ByteWriter) -> Bool {
        let stream = stream
        let start = output.count
        var rest = message
        repeat {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(Int(UInt32.max)))
            rest = UnsafeRawBufferPointer(rebasing: rest[piece.count...])
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(clamping: piece.count)
            var result = Z_OK
            repeat {
                // Stored blocks cost 5 bytes each; 64 also covers the rest of the last message and the flush.
                let room = min(Int(stream.pointee.avail_in) + Int(stream.pointee.avail_in) / 256 + 64, Self.roomBytes)
                output.append(upTo: room) { target in
                    stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    stream.pointee.avail_out = UInt32(clamping: target.count)
                    result = CZlib.deflate(stream, rest.isEmpty ? Z_SYNC_FLUSH : Z_NO_FLUSH)
                    return target.count - Int(stream.pointee.avail_out)
                }
                guard result == Z_OK || result == Z_BUF_ERROR else { return false }
            } while stream.pointee.avail_out == 0
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        } while !rest.isEmpty
        guard output.count - start > DeflateTail.byteCount else { return false }
        output.truncate(to: output.count - DeflateTail.byteCount)
        return true
    }
}
