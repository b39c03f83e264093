import Glibc
import Threads

/// Why a name has no address, as a sentence for people.
struct ResolveFailure: Error, Equatable {
    var sentence: String
}

/// Looks names up beside the loop, because getaddrinfo blocks.
///
/// Threads are made when there is work and leave when there is none: a look-up is rare and slow, a thread is cheap. A loop
/// that stops does not wait for them; their answers then go nowhere.
final class ResolverPool: Sendable {
    typealias Answer = @Sendable (Result<[SocketAddress], ResolveFailure>) -> Void

    private struct Request: Sendable {
        var host: String
        var port: Int
        var answer: Answer
    }

    private struct State {
        var waiting: [Request] = []
        var threads = 0
    }

    private let state = Locked(State())

    /// Calls `answer` once, on a thread of the pool.
    func resolve(host: String, port: Int, _ answer: @escaping Answer) {
        let request = Request(host: host, port: port, answer: answer)
        let needsThread = state.withLock { state in
            state.waiting.append(request)
            guard state.threads < TransportLimits.resolverThreads else { return false }
            state.threads += 1
            return true
        }
        guard needsThread else { return }
        switch startDetachedThread(name: "resolver", { self.work() }) {
        case .success: break
        case .failure(let failure):
            // Other threads may still take the requests; without any, they are abandoned.
            let abandoned = state.withLock { state -> [Request] in
                state.threads -= 1
                guard state.threads == 0 else { return [] }
                defer { state.waiting = [] }
                return state.waiting
            }
            let sentence = "cannot look names up: \(errorText(failure.errno))"
            for request in abandoned { request.answer(.failure(ResolveFailure(sentence: sentence))) }
        }
    }

    private func work() {
        while true {
            let next = state.withLock { state -> Request? in
                guard !state.waiting.isEmpty else {
                    state.threads -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { return }
            next.answer(Self.lookUp(host: next.host, port: next.port))
        }
    }

    /// The addresses of `host`, in the order in which they should be tried, without duplicates. Blocks.
    static func lookUp(host: String, port: Int) -> Result<[SocketAddress], ResolveFailure> {
        guard !host.isEmpty else { return .failure(ResolveFailure(sentence: "no host name was given")) }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        let systemError = errno
        guard status == 0 else {
            return .failure(ResolveFailure(sentence: sentence(host: host, status: status, errno: systemError)))
        }
        defer { freeaddrinfo(list) }

        var found: [SocketAddress] = []
        var entry = list
        while let info = entry?.pointee, found.count < TransportLimits.addressesPerHost {
            entry = info.ai_next
            let bytes = UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen))
            if let address = SocketAddress(kernelBytes: bytes)?.withPort(port), !found.contains(address) {
                found.append(address)
            }
        }
        return found.isEmpty ? .failure(ResolveFailure(sentence: "\(host) has no address")) : .success(found)
    }

    private static func sentence(host: String, status: Int32, errno: Int32) -> String {
        // EAI_NODATA is hidden behind _GNU_SOURCE in the platform's headers.
        let noData: Int32 = -5
        return switch status {
        case EAI_NONAME: "there is no host named \(host)"
        case noData: "\(host) has no address"
        case EAI_AGAIN: "the name service gave no answer for \(host)"
        case EAI_SYSTEM: "cannot look up \(host): \(errorText(errno))"
        default: "cannot look up \(host): \(String(cString: gai_strerror(status)))"
        }
    }
}
