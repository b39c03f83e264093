import Glibc

/// A kept file that is open: it can be read a part at a time, by any thread, and is closed with this.
final class MediaStoreFile: Sendable {
    private let descriptor: Int32
    /// Never 0.
    let byteCount: Int

    /// Nil where there is none, or none that this bridge would have kept.
    init?(_ path: String, maxBytes: Int) {
        descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size > 0, status.st_size <= maxBytes
        else {
            byteCount = 0
            return nil
        }
        byteCount = Int(status.st_size)
    }

    deinit {
        if descriptor >= 0 { _ = close(descriptor) }
    }

    /// Blocks on the disk.
    ///
    /// - Returns: all of `part`; nil: it is not there.
    func read(_ part: Range<Int>) -> [UInt8]? {
        guard part.lowerBound >= 0, part.upperBound <= byteCount else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: part.count) { buffer, filled in
            while filled < part.count {
                let count = pread(
                    descriptor, buffer.baseAddress?.advanced(by: filled), part.count - filled,
                    part.lowerBound + filled)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                filled += count
            }
        }
        return bytes.count == part.count ? bytes : nil
    }
}
