import Accounts
import BridgeCore
import BridgeTypes
import ChatModel
import IRCServer
import Transport

/// The bridge on its loop, as its neighbours there see it: the store, files, mirrors and the status. They call a verb of the
/// bridge, and then have its actions carried out.
protocol BridgeHost: AnyObject {
    var bridge: Bridge { get }
    /// Files over HTTP, where they are served.
    var media: MediaRoutes? { get }
    /// Rooms in tools elsewhere.
    var mirrors: MirrorService? { get }

    /// Carries out what the bridge wants done.
    func run(_ transport: Transport)
    /// Checks the password of an upload on another thread; the verdict goes to ``MediaRoutes/uploadChecked(_:_:_:)``.
    func checkUpload(_ check: PasswordCheck, _ transport: Transport)
}

/// What a loop with a bridge delivers its events to.
protocol BridgeLoop: TransportDelegate {
    var host: any BridgeHost { get }
}

extension Transport {
    /// The bridge on this loop, while it exists.
    var bridgeHost: (any BridgeHost)? { (delegate as? any BridgeLoop)?.host }

    /// Passes an answer of another thread to the bridge, if it still exists, and has the resulting actions carried out.
    func tellBridge(_ verb: (Bridge, Now) -> Void) {
        guard let host = bridgeHost else { return }
        verb(host.bridge, Now(self))
        host.run(self)
    }
}

extension Now {
    /// The moment on a loop's clocks.
    init(_ transport: Transport) {
        self.init(monotonic: transport.now, wall: ChatTimestamp(milliseconds: transport.wallClockMilliseconds))
    }
}
