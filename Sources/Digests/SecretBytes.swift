import CTLS

/// Bytes that must not stay in memory, nor be shown: they are overwritten when the last owner lets go, and no description
/// contains them.
public final class SecretBytes: @unchecked Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    // Sendable because the memory is written in init and deinit only, when there is one reference.
    private let storage: UnsafeMutableRawBufferPointer

    /// A copy of `bytes`; the caller's own are the caller's to wipe.
    public init(_ bytes: some Collection<UInt8>) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyBytes(from: bytes)
    }

    deinit {
        OPENSSL_cleanse(storage.baseAddress, storage.count)
        storage.deallocate()
    }

    public var count: Int { storage.count }

    /// Calls `body` with the bytes, which must not outlive the call.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(storage))
    }

    /// In a time that depends on the lengths only.
    public static func == (a: SecretBytes, b: SecretBytes) -> Bool {
        a.count == b.count && CRYPTO_memcmp(a.storage.baseAddress, b.storage.baseAddress, a.count) == 0
    }

    /// Overwrites bytes that are about to be let go. Of an array with a single owner, that is all there is.
    public static func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }

    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
