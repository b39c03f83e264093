import BridgeTypes
import WireBytes

// Frames for an operator who watches.

extension UpstreamSession {
    /// Bytes of a frame that are shown: histories are large.
    private static let maxTappedBytes = 64 * 1024

    /// A log-in is under way on the socket: frames may carry credentials in any encoding.
    private var isLoggingIn: Bool {
        if case .authenticating = stage { return true }
        return renewal != .none
    }

    func tap(_ payload: UnsafeRawBufferPointer, isBinary: Bool, isIncoming: Bool) {
        let text: String? =
            isLoggingIn || payload.count > Self.maxTappedBytes
            ? nil
            : String(validating: payload, as: UTF8.self).map {
                SecretScrubber.scrubbed($0, of: secrets + shared.tokens(of: settings.backend))
            }
        shared.frameTap?(
            TappedFrame(
                link: room, isIncoming: isIncoming, isBinary: isBinary, text: text, byteCount: payload.count))
    }
}
