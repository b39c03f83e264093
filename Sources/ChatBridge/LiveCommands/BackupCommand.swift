import Glibc
import JSONText
import Store
import Transport
import WireBytes

extension LiveCommands {
    /// `chatbridge backup FILE`: a copy of the database as it is at this moment, while the bridge goes on.
    ///
    /// The copy is made by this process, so that it belongs to the administrator and lies where they may write.
    func backup(_ file: String, _ client: AdminClient) throws(AdminClientError) -> Int32 {
        let place = try ask(client, .store)
        guard let path = place["path"]?.string else { throw .lost("the bridge does not say where its database lies") }
        var progress = ProgressLine(isShown: showsProgress, errors)
        do throws(StoreBackupError) {
            let bytes = try StoreBackup.copy(path, to: file) { done, total in
                progress.show(
                    nanoseconds: SystemClock.monotonic().nanoseconds, ProgressLine.bar(done, of: total))
            }
            progress.end(ProgressLine.bar(1, of: 1))
            write(["\(file): \(bytes) bytes"])
            return ExitCode.ok
        } catch {
            progress.end("")
            errors("chatbridge: \(error.sentence)\n")
            return error.isOfSource ? ExitCode.inputOutput : ExitCode.cannotCreate
        }
    }
}
