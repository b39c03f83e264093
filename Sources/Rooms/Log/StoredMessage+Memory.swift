import ChatModel

extension StoredMessage {
    /// Approximate bytes of the message in memory.
    package var memoryByteCount: Int {
        var count = 512 + self.text.utf8.count + (self.sentAs?.utf8.count ?? 0)
        for attachment in self.attachments {
            count +=
                256 + (attachment.inline?.utf8.count ?? 0) + (attachment.url?.utf8.count ?? 0)
                + (attachment.thumbnail?.utf8.count ?? 0)
        }
        for tag in self.clientTags { count += 64 + tag.name.utf8.count + (tag.value?.utf8.count ?? 0) }
        return count
    }
}
