import CSystem

/// Starts a thread that runs `body` and is to be joined; the failure is a positive error number.
package func startThread(name: String, _ body: @escaping @Sendable () -> Void) -> Result<UInt, ThreadFailure> {
    final class Start: Sendable {
        let body: @Sendable () -> Void
        init(body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let start = Unmanaged.passRetained(Start(body: body))
    var thread: UInt = 0
    let error = cb_thread_start(
        name,
        { argument in
            if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, start.toOpaque(), &thread)
    guard error == 0 else {
        start.release()
        return .failure(ThreadFailure(errno: error))
    }
    return .success(thread)
}

package struct ThreadFailure: Error {
    package let errno: Int32
}

/// Starts a thread that runs `body` and is nobody's to join.
package func startDetachedThread(name: String, _ body: @escaping @Sendable () -> Void) -> Result<Void, ThreadFailure> {
    startThread(name: name, body).map { cb_thread_detach($0) }
}
