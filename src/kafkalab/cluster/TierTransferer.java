package kafkalab;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.kafka.server.log.remote.storage.Transferer;

/**
 * Copies the files of a segment into the remote tier.
 *
 * The tier's folder is a link. While it points to "full", what is copied goes to the device that is always full, so
 * that the operating system itself refuses it: "No space left on device". Reading and deleting don't come by here.
 */
public final class TierTransferer implements Transferer {

    private static final String FULL = "full";
    private static final File FULL_DEVICE = new File("/dev/full");

    @Override
    public void transfer(File from, File to) throws IOException {
        if (from.exists()) {
            write(ByteBuffer.wrap(Files.readAllBytes(from.toPath())), to);
        }
    }

    @Override
    public void transfer(ByteBuffer from, File to) throws IOException {
        if (from != null && from.hasRemaining()) {
            write(from, to);
        }
    }

    private static void write(ByteBuffer data, File to) throws IOException {
        Path tier = to.toPath().getParent().getParent();
        boolean full = Files.readSymbolicLink(tier).endsWith(FULL);
        try (FileOutputStream stream = new FileOutputStream(full ? FULL_DEVICE : to); FileChannel channel = stream.getChannel()) {
            while (data.hasRemaining()) {
                channel.write(data);
            }
        }
    }
}
