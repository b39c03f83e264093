import ChatModel
import HTTPProtocol
import WireBytes

// The bodies of requests, as they come.

extension StudioServer {
    mutating func bodyStarts(
        _ id: StudioPeerID, _ peer: Peer, _ head: HTTPRequestHead, _ rest: UnsafeRawBufferPointer,
        now: MonotonicInstant, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        let isUpload = head.target == "/api/upload-file"
        do throws(HTTPProtocolError) {
            let framing = try HTTPBodyFraming(request: head)
            let decoder = try HTTPBodyDecoder(
                framing, maxBytes: isUpload ? StudioLimits.maxUploadBytes : StudioLimits.maxCallBytes)
            if framing != .none { deadlines.set(id, at: now + StudioLimits.bodyTimeout) }
            bodyReceived(id, peer, head, decoder, [], rest, at: at, &actions)
        } catch {
            refuseBody(id, error, at: at, &actions)
        }
    }

    mutating func refuseBody(
        _ id: StudioPeerID, _ error: HTTPProtocolError, at: ChatTimestamp, _ actions: inout [StudioAction]
    ) {
        let isTooLarge = if case .bodyTooLarge = error { true } else { false }
        let answer =
            isTooLarge
            ? StudioAnswer.detail("File size must be less than 10MB", 400, "Bad Request")
            : .text(error.sentence + "\n", status: error.statusHint, reason: "Bad Request")
        end(id, answer.bytes(), at: at, &actions)
    }

    mutating func bodyReceived(
        _ id: StudioPeerID, _ peer: Peer, _ head: HTTPRequestHead, _ decoder: consuming HTTPBodyDecoder,
        _ body: consuming [UInt8], _ bytes: UnsafeRawBufferPointer, at: ChatTimestamp,
        _ actions: inout [StudioAction]
    ) {
        var rest = bytes
        do throws(HTTPProtocolError) {
            while true {
                switch try decoder.bytesReceived(rest) {
                case .needMoreData:
                    peer.place = .sendingBody(head, decoder, body)
                    return
                case .part(let range):
                    body += rest[range]
                    rest = UnsafeRawBufferPointer(rebasing: rest[range.upperBound...])
                case .end:
                    let answer = answer(Request(head, body: body, at: at), &actions)
                    return end(id, answer.bytes(isHead: head.method == "HEAD"), at: at, &actions)
                }
            }
        } catch {
            refuseBody(id, error, at: at, &actions)
        }
    }
}
